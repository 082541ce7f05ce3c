"""Every role has what its capabilities need, and nothing beside."""

import re
from collections import defaultdict
from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import Check, Finding
from onecommit.doctor.rows import GrantRow

_COLUMNS = re.compile(r"(\w+) \(([^)]*)\)")
_REPAIR = "Grant it again with the statements that `onecommit provision --print` writes, or revoke what is left."


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    given = [g for g in catalog.grants if g.grantee != "PUBLIC" and g.grantee not in catalog.owners]
    for grant in given:
        if problem := _excess(grant, expected):
            yield Finding(
                subject=_target(grant),
                problem=f"{grant.grantee} {problem}",
                remedy=f"revoke {grant.privilege.lower()} on this {grant.kind} from {grant.grantee};",
            )
    for role in sorted({grant.grantee for grant in given}):
        yield from _missing(role, [grant for grant in given if grant.grantee == role], expected)


def _excess(grant: GrantRow, expected: Expected) -> str | None:
    """What is wrong with having the privilege at all, whatever the role is for."""
    if grant.grantable:
        return f"may grant {grant.privilege} on"
    if grant.kind == "schema":
        return (
            None
            if grant.privilege == "USAGE"
            else f"has {grant.privilege}: it can put its own objects there"
        )
    if grant.kind == "routine":
        known = expected.routines.get(_name(grant))
        allowed = known is not None and bool(known.grants - {"owner"})
        return None if allowed else "may call it, which is for the owner and for other routines"
    if grant.kind == "default":
        return f"gets {grant.privilege} on whatever is created"
    if (grant.object, grant.privilege.lower(), grant.column) in _allowed(expected):
        return None
    return f"has {grant.privilege}, which no capability needs"


def _allowed(expected: Expected) -> set[tuple[str, str, str | None]]:
    return {
        (table, privilege, column)
        for tables in expected.tables.values()
        for table, privileges in tables.items()
        for privilege, column in _privileges(privileges)
    }


def _privileges(privileges: list[str]) -> Iterator[tuple[str, str | None]]:
    for text in privileges:
        limited = _COLUMNS.fullmatch(text)
        if limited is None:
            yield text, None
        else:
            yield from ((limited[1], column.strip()) for column in limited[2].split(","))


def _missing(role: str, given: list[GrantRow], expected: Expected) -> Iterator[Finding]:
    routines = {_name(grant) for grant in given if grant.kind == "routine"}
    if routines and not any(grant.kind == "schema" for grant in given):
        yield Finding(
            subject=role, problem="may call routines but lacks USAGE on the schema", remedy=_REPAIR
        )
    tables = {
        (g.object, g.privilege.lower(), g.column)
        for g in given
        if g.kind in ("table", "sequence", "column")
    }
    for capability, needed in _needed(expected).items():
        alone = {name for name in needed if expected.routines[name].grants == {capability}}
        if routines & alone and (lost := needed - routines - {"store_status"}):
            yield Finding(
                subject=role,
                problem=f"lacks EXECUTE for its capability {capability}: {', '.join(sorted(lost))}",
                remedy=_REPAIR,
            )
        for table, privileges in (
            expected.tables.get(capability, {}).items() if routines & alone else ()
        ):
            wanted = {(table, privilege, column) for privilege, column in _privileges(privileges)}
            if wanted - tables:
                yield Finding(
                    subject=role,
                    problem=f"lacks rights on {table} for its capability {capability}",
                    remedy=_REPAIR,
                )


def _needed(expected: Expected) -> dict[str, set[str]]:
    needed: dict[str, set[str]] = defaultdict(set)
    for routine in expected.routines.values():
        for capability in routine.grants - {"owner"}:
            needed[capability].add(routine.name)
    return needed


def _name(grant: GrantRow) -> str:
    return grant.object.partition("(")[0]


def _target(grant: GrantRow) -> str:
    return f"{grant.object}.{grant.column}" if grant.column else grant.object


CHECK = Check(
    name="role_grants",
    looks_at="missing and excessive grants of every role, measured by the manifest",
    findings=_findings,
)
