"""Each chapter's three tables are where claims, completions and their truncation expect them."""

from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import RING, Expected
from onecommit.doctor.finding import Check, Finding
from onecommit.doctor.rows import RelationRow

_STOP = "Stop the workers before anything is reclaimed, then put the tables back as migration 0002 made them."


def _findings(catalog: Catalog, _: Expected) -> Iterator[Finding]:
    relations = {relation.name: relation for relation in catalog.relations}
    for family, children in RING.items():
        parent = relations.get(family)
        if parent is not None and parent.kind != "p":
            yield Finding(subject=family, problem="is not a partitioned table", remedy=_STOP)
        for slot, name in enumerate(children):
            child = relations.get(name)
            if child is None:
                yield Finding(
                    subject=name, problem="is missing: dropped, renamed or moved away", remedy=_STOP
                )
            else:
                yield from _child(child, family, slot)
    for relation in catalog.relations:
        if (
            relation.kind != "I"
            and relation.parent in RING
            and relation.name not in RING[relation.parent]
        ):
            yield Finding(
                subject=relation.name,
                problem=f"is attached to {relation.parent} under a name that is not its own",
                remedy=_STOP,
            )


def _child(child: RelationRow, family: str, slot: int) -> Iterator[Finding]:
    if child.kind != "r" or child.persistence != "p":
        yield Finding(subject=child.name, problem="is not an ordinary logged table", remedy=_STOP)
    if child.parent is None:
        yield Finding(subject=child.name, problem=f"is detached from {family}", remedy=_STOP)
    elif child.parent != family:
        yield Finding(
            subject=child.name,
            problem=f"is attached to {child.parent}, not to {family}",
            remedy=_STOP,
        )
    elif (child.bound or "").replace("'", "") != f"FOR VALUES IN ({slot})":
        yield Finding(
            subject=child.name,
            problem=f"holds another slot than {slot}: {child.bound}",
            remedy=_STOP,
        )


CHECK = Check(
    name="ring",
    looks_at="names, parents, bounds and kind of the three tables of each chapter",
    findings=_findings,
)
