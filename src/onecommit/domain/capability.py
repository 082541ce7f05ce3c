"""What a login must be able to do for an operation, and the error where it is not."""

from onecommit.errors import CapabilityMissing

Needs = tuple[tuple[str, ...], ...]
"""Alternatives, each with all that it takes; empty if every login will do."""

MIGRATOR: Needs = (("migrator",),)
"""The owner of the schema."""


def in_words(needs: Needs) -> str:
    """Such as "executor and maintenance" or "reader or work_operator"."""
    return " or ".join(" and ".join(all_of) for all_of in needs) or "none"


def lacking(needs: Needs, doing: str) -> CapabilityMissing:
    """What the login lacks for this, and how it gets it: the first of the alternatives."""
    roles = ", ".join(f"onecommit_{each}" for each in needs[0])
    remedy = f"Use a login that has it, or run `grant {roles} to` this one if the roles have their default names."
    if needs == MIGRATOR:
        remedy = (
            "Run it as the owner of the schema; creating a schema needs CREATE on the database."
        )
    return CapabilityMissing(
        f"the login lacks the capability {in_words(needs)}, which {doing} needs",
        needs=needs,
        remedy=remedy,
    )
