"""One role owns the tables; what runs as its owner runs as a role that can do nothing else."""

from collections import Counter
from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import Check, Finding
from onecommit.doctor.rows import MembershipRow, RoleRow


def _findings(catalog: Catalog, _: Expected) -> Iterator[Finding]:
    yield from _strangers(catalog)
    for name in sorted(catalog.execution_owners):
        if name in catalog.roles:
            yield from _unbounded(catalog.roles[name], catalog.owner)
    yield from _bounds(catalog)


def _strangers(catalog: Catalog) -> Iterator[Finding]:
    owned = [
        (relation.name, relation.owner) for relation in catalog.relations if not relation.is_owned
    ]
    owned += [(other.name, other.owner) for other in catalog.others if other.owner is not None]
    owned += [(r.signature, r.owner) for r in catalog.routines if not r.is_definer]
    definers = [(r.signature, r.owner) for r in catalog.routines if r.is_definer]
    usual = Counter(owner for _, owner in definers).most_common(1)
    for right, objects in ((catalog.owner, owned), (usual[0][0] if usual else "", definers)):
        for name, owner in objects:
            if owner != right:
                yield Finding(
                    subject=name,
                    problem=f"belongs to {owner}, who can change it, and what is like it to {right}",
                    remedy=f"Look at it, then give it to {right} with ALTER … OWNER TO.",
                )


def _unbounded(role: RoleRow, schema_owner: str) -> Iterator[Finding]:
    powers = {
        "is a superuser": role.is_superuser,
        "has BYPASSRLS": role.bypasses_rls,
        "has CREATEROLE": role.creates_roles,
        "has CREATEDB": role.creates_databases,
        "has REPLICATION": role.replicates,
        "can log in": role.can_login,
        "owns a schema": role.owns_schemas,
    }
    for power, held in powers.items():
        if held:
            yield Finding(
                subject=role.name,
                problem=f"{power}, and routines run with its rights",
                remedy="Give the routines that run as their owner to a NOLOGIN role without attributes and schemas"
                " (`onecommit provision --print` writes the statements).",
                strict=True,
            )
    if role.name == schema_owner:
        yield Finding(
            subject=role.name,
            problem="owns the schema and the routines that run as their owner: the profile is single-role",
            remedy="Have a bounded execution owner for these routines.",
            strict=True,
        )


def _bounds(catalog: Catalog) -> Iterator[Finding]:
    """An execution owner beside the schema's: nobody else can become it, and it makes and grants nothing."""
    bounded = catalog.execution_owners - {catalog.owner}
    for membership in catalog.memberships:
        if membership.role in bounded and not _may_be_member(membership, catalog):
            yield Finding(
                subject=membership.role,
                problem=f"can be reached by its member {membership.member}",
                remedy=f"revoke {membership.role} from {membership.member};",
                strict=True,
            )
        if membership.member in bounded:
            yield Finding(
                subject=membership.member,
                problem=f"is a member of {membership.role}, and routines run with its rights",
                remedy=f"revoke {membership.role} from {membership.member};",
                strict=True,
            )
    for grant in catalog.grants:
        if grant.grantee in bounded and (grant.grantable or grant.privilege == "CREATE"):
            what = f"may grant {grant.privilege} on" if grant.grantable else "can make objects in"
            yield Finding(
                subject=grant.object,
                problem=f"{grant.grantee} {what} it",
                remedy=f"revoke {grant.privilege.lower()} on this {grant.kind} from {grant.grantee}, and grant it without the option.",
                strict=True,
            )


def _may_be_member(membership: MembershipRow, catalog: Catalog) -> bool:
    """The schema's owner, who replaces routines; and who made the role, from PostgreSQL 16 on, to administer it only."""
    if membership.member == catalog.owner:
        return True
    member = catalog.roles.get(membership.member)
    uses = membership.inherits or membership.sets
    return member is not None and member.creates_roles and not uses


CHECK = Check(
    name="ownership", looks_at="who owns the schema and everything in it", findings=_findings
)
