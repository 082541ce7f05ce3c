"""What the doctor reads of PostgreSQL's catalogs, one class for each kind of row."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutineRow:
    """A function or procedure of the schema."""

    name: str
    signature: str
    """`name(types)`, without the schema."""
    arguments: str
    returns: str
    language: str
    is_definer: bool
    attributes: frozenset[str]
    """Of immutable, stable, strict, leakproof, parallel safe and so on; defaults are left out."""
    config: frozenset[str]
    owner: str
    body: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRow:
    """A table, index, sequence, view or composite type of the schema."""

    name: str
    kind: str
    owner: str
    persistence: str
    row_security: bool
    force_row_security: bool
    parent: str | None
    """The partitioned relation that it is attached to."""
    bound: str | None
    is_owned: bool
    """Whether it belongs to a column, constraint or other relation and goes with it."""
    is_valid: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRow:
    """Anything else that lives in the schema, as PostgreSQL describes it."""

    kind: str
    name: str
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """One privilege of one grantee, the owner's own left out."""

    kind: str
    """schema, routine, table, sequence, column, type or default."""
    object: str
    column: str | None
    grantee: str
    """A role, or PUBLIC."""
    privilege: str
    grantable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionRow:
    """How one thing was made: a column, constraint, index, sequence, table or type."""

    kind: str
    relation: str
    """Or the type."""
    part: str
    """The column or constraint; empty for what stands for itself."""
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A row-level security policy."""

    table: str
    name: str
    command: str
    permissive: bool
    roles: frozenset[str]
    using: str | None
    check: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRow:
    """A trigger or rule on a table of the schema."""

    table: str
    name: str
    definition: str
    enabled: str
    """O: fires in ordinary sessions."""
    is_internal: bool
    is_rule: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRow:
    """A role's attributes; those of a superuser include all others."""

    name: str
    can_login: bool
    is_superuser: bool
    bypasses_rls: bool
    creates_roles: bool
    creates_databases: bool
    replicates: bool
    owns_schemas: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipRow:
    """One grant of a role to a member; before PostgreSQL 16 a member may always SET, and inherits as its role says."""

    role: str
    member: str
    inherits: bool
    sets: bool
    administers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRow:
    """What the store says of itself."""

    store_id: str | None
    version: int | None
    active_epoch: int | None
