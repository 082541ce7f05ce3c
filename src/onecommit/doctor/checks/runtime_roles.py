"""No login that uses the store can become somebody whom row-level security or a missing grant does not stop."""

from collections import defaultdict
from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import Check, Finding
from onecommit.doctor.rows import MembershipRow, RoleRow

_POWERFUL = frozenset(
    {
        "pg_read_all_data",
        "pg_write_all_data",
        "pg_execute_server_program",
        "pg_read_server_files",
        "pg_write_server_files",
    }
)
_SET, _INHERIT = "SET", "INHERIT"
_SEPARATE = "Revoke the membership that the path names, or use a login of its own for this."


def _findings(catalog: Catalog, _: Expected) -> Iterator[Finding]:
    for name in sorted(_runtime_roles(catalog)):
        role = catalog.roles.get(name)
        if role is not None and not role.is_superuser:
            yield from _own(role)
            yield from _reached(name, catalog)
        elif role is not None and _granted(catalog, name):
            yield _attribute(role, "is a superuser")


def _granted(catalog: Catalog, name: str) -> bool:
    return any(grant.grantee == name for grant in catalog.grants if grant.kind != "default")


def _runtime_roles(catalog: Catalog) -> set[str]:
    """Who has a grant in the schema, and who inherits or may take it; neither owners nor mere administrators of roles."""
    members = defaultdict(set)
    for membership in catalog.memberships:
        if membership.inherits or membership.sets:
            members[membership.role].add(membership.member)
    waiting = {g.grantee for g in catalog.grants if g.grantee != "PUBLIC"} - catalog.owners
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= members[name] - found - catalog.owners
    return found


def _own(role: RoleRow) -> Iterator[Finding]:
    if role.bypasses_rls:
        yield _attribute(role, "has BYPASSRLS")
    if role.creates_roles:
        yield _attribute(role, "has CREATEROLE", strict=True)
    if role.replicates:
        yield _attribute(role, "has REPLICATION, which copies every row", strict=True)


def _attribute(role: RoleRow, problem: str, *, strict: bool = False) -> Finding:
    return Finding(
        subject=role.name,
        problem=f"uses the store and {problem}",
        remedy=f"Take the attribute from {role.name}, or use another login.",
        strict=strict,
    )


def _reached(start: str, catalog: Catalog) -> Iterator[Finding]:
    for name, (mode, path) in sorted(reachable(start, catalog.memberships).items()):
        problem = _power(name, mode, catalog)
        if problem:
            yield Finding(
                subject=start, problem=f"can become {problem}, by {path}", remedy=_SEPARATE
            )


def _power(name: str, mode: str, catalog: Catalog) -> str | None:
    if name in catalog.owners:
        return f"{name}, an owner of the store"
    if name in _POWERFUL:
        return f"{name}, which reaches past every grant"
    role = catalog.roles.get(name)
    # Attributes are never inherited: one has to SET ROLE for them.
    if role is None or mode != _SET:
        return None
    if role.is_superuser:
        return f"{name}, a superuser"
    return f"{name}, who has BYPASSRLS" if role.bypasses_rls else None


def reachable(start: str, memberships: tuple[MembershipRow, ...]) -> dict[str, tuple[str, str]]:
    """Every role that the start may become (SET) or act as (INHERIT), and a shortest path to it.

    SET leads from SET to SET; INHERIT from both; ADMIN, from both, lets the member give itself the rest.
    """
    edges = defaultdict(list)
    for membership in memberships:
        edges[membership.member].append(membership)
    found: dict[tuple[str, str], str] = {}
    waiting = [(start, _SET, start)]
    while waiting:
        name, mode, path = waiting.pop(0)
        if (name, mode) in found:
            continue
        found[name, mode] = path
        for edge in edges[name]:
            waiting += (
                (edge.role, next_mode, f"{path} → {edge.role} ({how})")
                for next_mode, how in _steps(edge, mode)
            )
    del found[start, _SET]
    best = {name: (_INHERIT, path) for (name, mode), path in found.items() if mode == _INHERIT}
    return best | {name: (_SET, path) for (name, mode), path in found.items() if mode == _SET}


def _steps(edge: MembershipRow, mode: str) -> Iterator[tuple[str, str]]:
    if edge.sets and mode == _SET:
        yield _SET, "set"
    elif edge.administers:
        yield _SET, "admin"
    if edge.inherits:
        yield _INHERIT, "inherit"


CHECK = Check(
    name="runtime_roles",
    looks_at="attributes of the roles that use the store, and every path of INHERIT, SET and ADMIN to a stronger one",
    findings=_findings,
)
