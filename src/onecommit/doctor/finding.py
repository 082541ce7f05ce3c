"""What a check says: one thing that is wrong, and what an operator can do about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.vitals import Vitals


class Severity(StrEnum):
    """Whether a pipeline has to stop."""

    FINDING = "finding"
    """Something is wrong; drift always is."""
    WARNING = "warning"
    """It works, but badly, or not for long."""
    INFORMATION = "information"
    """Nothing is wrong; somebody may want to do something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One deviation; the remedy is a text, which the doctor never applies."""

    subject: str
    """The object, as PostgreSQL names it."""
    problem: str
    remedy: str
    strict: bool = False
    """Whether it is one in the strict profile only."""
    severity: Severity = Severity.FINDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A name and a pure verdict over what the catalog holds and what the package installs."""

    name: str
    looks_at: str
    findings: Callable[[Catalog, Expected], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VitalCheck:
    """A name and a pure verdict over what goes on in the store at the moment."""

    name: str
    looks_at: str
    findings: Callable[[Vitals], Iterator[Finding]]


REINSTALL = "Run `onecommit migrate --reinstall-routines` as the owner of the schema."
