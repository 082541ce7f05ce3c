"""What the doctor found, and the profile that the store has."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from onecommit.doctor.finding import Finding


class Profile(StrEnum):
    """How much a stolen login could do: strict keeps ownership away from everybody who can log in."""

    SINGLE = "single-role"
    STRICT = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """What was found, by check; findings of the strict profile only if it was asked for."""

    schema: str
    profile: Profile
    """What the store has, whatever was asked for."""
    checks: Sequence[str]
    findings: Sequence[tuple[str, Finding]]
    """Each with the name of its check."""
    warnings: Sequence[tuple[str, Finding]] = ()
    """What works, but badly or not for long."""
    information: Sequence[tuple[str, Finding]] = ()
    """What somebody may want to know; nothing is wrong."""
    unseen: Sequence[str]
    """What the login may not see, so that no verdict covers it."""
    unseen_at_work: Sequence[str] = ()
    """The same of what goes on at the moment."""

    @property
    def remedies(self) -> list[str]:
        """What an operator may do about all that was found, each once; the doctor does none of it."""
        found = (*self.findings, *self.warnings, *self.information)
        return list(dict.fromkeys(f"{finding.subject}: {finding.remedy}" for _, finding in found))
