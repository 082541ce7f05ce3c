"""Columns, constraints, indexes, sequences, tables and types are as the migrations made them."""

from collections import defaultdict
from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected, definition_of, shared_name
from onecommit.doctor.finding import Check, Finding

_PARTS = ("column", "constraint")
"""What a table or type has several of; a whole table, sequence or index that is missing or foreign is told by objects."""
_REMEDY = "Look at it, then alter it back; `\\d` shows how it is, the migration how it was made."


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    wanted = _parts_by_relation(expected)
    found = defaultdict(set)
    for row in catalog.definitions:
        (kind, relation, part), definition = definition_of(row, catalog.schema)
        found[row.relation].add((kind, part))
        known = expected.definitions.get((kind, relation, part))
        if known is None and kind in _PARTS and relation in wanted:
            yield _finding(
                row.relation, row.part, f"was made by no migration ({kind}: {definition})"
            )
        elif known is not None and known != definition:
            yield _finding(row.relation, row.part, f"the {kind} is: {definition}; and not: {known}")
    for relation, parts in sorted(found.items()):
        for kind, part in sorted(wanted.get(shared_name(relation), set()) - parts):
            yield _finding(relation, part, f"the {kind} is missing")
    types = {relation for kind, relation, _ in expected.definitions if kind == "type"}
    for name in sorted(types - found.keys()):
        yield _finding(name, "", "the type is missing")


def _parts_by_relation(expected: Expected) -> dict[str, set[tuple[str, str]]]:
    parts = defaultdict(set)
    for kind, relation, part in expected.definitions:
        if kind in _PARTS:
            parts[relation].add((kind, part))
    return parts


def _finding(relation: str, part: str, problem: str) -> Finding:
    name = f"{relation}.{part}" if part else relation
    return Finding(subject=name, problem=problem, remedy=_REMEDY)


CHECK = Check(
    name="definitions",
    looks_at="columns, constraints, indexes, sequences, storage options and types",
    findings=_findings,
)
