"""What the doctor found, and the profile that the store has."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from onecommit.schema.doctor.finding import Finding


class Profile(StrEnum):
    """How much a stolen login could do: strict keeps ownership away from everybody who can log in."""

    SINGLE = "single-role"
    STRICT = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Findings by check; those of the strict profile only if it was asked for."""

    schema: str
    profile: Profile
    """What the store has, whatever was asked for."""
    checks: Sequence[str]
    findings: Sequence[tuple[str, Finding]]
    """Each with the name of its check."""
    unseen: Sequence[str]
    """What the login may not see, so that no verdict covers it."""

    @property
    def remedies(self) -> list[str]:
        """What an operator may do about the findings, each once; the doctor does none of it."""
        return list(
            dict.fromkeys(f"{finding.subject}: {finding.remedy}" for _, finding in self.findings)
        )
