"""The schema holds what the migrations made, whole, and nothing else."""

import re
from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import RING, Expected
from onecommit.doctor.finding import Check, Finding
from onecommit.doctor.rows import RelationRow

_LANE_SEQUENCE = re.compile(r"lane_\d+_(number|generation|sleeper)")
_CHILD_INDEX = re.compile(r"ready_[0-5]_(first|again)")
_CHILDREN = frozenset(name for children in RING.values() for name in children)
_WORDS = {
    "r": "table",
    "p": "table",
    "S": "sequence",
    "i": "index",
    "I": "index",
    "v": "view",
    "m": "view",
    "f": "table",
}


def _findings(catalog: Catalog, expected: Expected) -> Iterator[Finding]:
    found = {relation.name for relation in catalog.relations}
    for word, names in expected.relations.items():
        for name in sorted(names - found):
            yield Finding(
                subject=name,
                problem=f"the {word} is missing",
                remedy="Create it as its migration does, or restore a backup.",
            )
    for relation in catalog.relations:
        if not _is_known(relation, expected):
            yield _foreign(_WORDS.get(relation.kind, "object"), relation.name)
        if not relation.is_valid:
            yield Finding(
                subject=relation.name,
                problem="the index is not valid",
                remedy="reindex index concurrently …;",
            )
        if (
            relation.kind in ("r", "p")
            and relation.persistence != "p"
            and relation.name in expected.relations["table"]
        ):
            yield Finding(
                subject=relation.name,
                problem="is unlogged: a crash empties it",
                remedy="alter table … set logged;",
            )
    for other in catalog.others:
        if other.name not in expected.types:
            yield _foreign(other.kind, other.name)


def _is_known(relation: RelationRow, expected: Expected) -> bool:
    name = relation.name
    match relation.kind:
        case "r" | "p":
            return name in expected.relations["table"] or name in _CHILDREN
        case "S":
            return (
                relation.is_owned
                or name in expected.relations["sequence"]
                or bool(_LANE_SEQUENCE.fullmatch(name))
            )
        case "i" | "I":
            return (
                relation.is_owned
                or relation.parent is not None
                or name in expected.relations["index"]
                or bool(_CHILD_INDEX.fullmatch(name))
            )
        case "c":
            return True  # a type, judged as such
        case _:
            return False


def _foreign(kind: str, name: str) -> Finding:
    return Finding(
        subject=name,
        problem=f"was made by no migration ({kind})",
        remedy="Find out who made it; move it to a schema of its own, or drop it.",
    )


CHECK = Check(
    name="objects",
    looks_at="missing and foreign tables, sequences, indexes, types, operators and so on",
    findings=_findings,
)
