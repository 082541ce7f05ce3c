"""Row-level security is enabled and forced on every table of Work, with exactly its policies."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected, without_schema
from onecommit.doctor.finding import Check, Finding
from onecommit.doctor.rows import PolicyRow

_IN_SCOPE = "scope_id=current_scope"
_UPDATED = frozenset({"scope", "work", "dispatch", "effect_permit", "operator_command"})
_NO_UPDATE = frozenset({"scope_history", "work_history", "work_payload", "work_result"})
TABLES = _UPDATED | _NO_UPDATE
_DELETED_BY_OWNER = frozenset({"work_payload", "dispatch"})
_UPDATED_BY_OWNER = frozenset({"work_result", "work_history"})
_REMEDY = "Compare it with the policies at the end of migration 0005, and make it so as the owner of the schema."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policy:
    command: str
    for_owner: bool = False
    using: str | None = None
    check: str | None = None


def _policies(table: str) -> dict[str, _Policy]:
    """As migration 0005 makes them, expressions flattened."""
    policies = {
        "in_scope_select": _Policy(command="select", using=_IN_SCOPE),
        "in_scope_insert": _Policy(command="insert", check=_IN_SCOPE),
        "work_contract_discovery_owner" if table == "dispatch" else "owner_select": _Policy(
            command="select", for_owner=True, using="true"
        ),
    }
    if table in _UPDATED:
        check = f"{_IN_SCOPE}andstate='disabled'" if table == "scope" else None
        policies["in_scope_update"] = _Policy(command="update", using=_IN_SCOPE, check=check)
    if table in _DELETED_BY_OWNER:
        policies["owner_delete"] = _Policy(command="delete", for_owner=True, using=_IN_SCOPE)
    if table in _UPDATED_BY_OWNER:
        policies["owner_update"] = _Policy(command="update", for_owner=True, using=_IN_SCOPE)
    return policies


def _findings(catalog: Catalog, _: Expected) -> Iterator[Finding]:
    for relation in catalog.relations:
        if relation.name in TABLES:
            if not relation.row_security:
                yield Finding(
                    subject=relation.name,
                    problem="has row-level security switched off: a runtime sees every scope",
                    remedy="alter table … enable row level security;",
                )
            if not relation.force_row_security:
                yield Finding(
                    subject=relation.name,
                    problem="does not force row-level security, so its owner is not bound by it",
                    remedy="alter table … force row level security;",
                )
        elif relation.row_security or relation.force_row_security:
            yield Finding(
                subject=relation.name,
                problem="has row-level security, which hides its rows from the routines that count them",
                remedy="alter table … disable row level security, no force row level security;",
            )
    for table in sorted(TABLES & {relation.name for relation in catalog.relations}):
        yield from _table(table, catalog)
    for policy in catalog.policies:
        if policy.table not in TABLES:
            yield _unknown(policy)


def _table(table: str, catalog: Catalog) -> Iterator[Finding]:
    installed = {policy.name: policy for policy in catalog.policies if policy.table == table}
    for name, known in _policies(table).items():
        if name not in installed:
            yield Finding(
                subject=f"{table}.{name}", problem="the policy is missing", remedy=_REMEDY
            )
        elif problem := _difference(installed[name], known, catalog):
            yield Finding(subject=f"{table}.{name}", problem=problem, remedy=_REMEDY)
    for name in sorted(installed.keys() - _policies(table).keys()):
        yield _unknown(installed[name])


def _unknown(policy: PolicyRow) -> Finding:
    return Finding(
        subject=f"{policy.table}.{policy.name}",
        problem="is no policy of this release: a permissive one shows more rows, a restrictive one hides some",
        remedy="Drop the policy.",
    )


def _difference(policy: PolicyRow, known: _Policy, catalog: Catalog) -> str | None:
    if policy.command != known.command or not policy.permissive:
        return f"is not a permissive policy for {known.command}"
    if not (policy.roles <= catalog.owners if known.for_owner else policy.roles == {"PUBLIC"}):
        return f"holds for {', '.join(sorted(policy.roles))}"
    for found, wanted in ((policy.using, known.using), (policy.check, known.check)):
        if _bare(found, catalog.schema) != wanted:
            return "has another condition than the scope of the transaction"
    return None


def _bare(expression: str | None, schema: str) -> str | None:
    """The expression without parentheses, casts to text and the schema's name."""
    if expression is None:
        return None
    return re.sub(r"::text|[\s()]", "", without_schema(expression, schema)).lower()


CHECK = Check(
    name="row_security",
    looks_at="row-level security and its policies on every table of Work, and none on any other",
    findings=_findings,
)
