"""What an executor may say about its attempt, and what a reconciler may say about one.

Each is a fact. The protocol decides what becomes of the Work, and when.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar, final

from onecommit.domain.work_identifier import checked_code

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


@final
@dataclass(frozen=True, slots=True)
class Succeeded(Generic[ResultT_co]):
    """The provider did it."""

    result: ResultT_co = field(repr=False)


@final
@dataclass(frozen=True, slots=True)
class RetryBeforeEffect:
    """Proof that no mutation began at the provider: the Work is tried again while its policy allows."""

    code: str

    def __post_init__(self) -> None:
        checked_code(self.code, field="code")


@final
@dataclass(frozen=True, slots=True)
class FailedTerminal:
    """It is of no use to try again. No proof that nothing happened: an admitted effect stays unknown."""

    code: str

    def __post_init__(self) -> None:
        checked_code(self.code, field="code")


@final
@dataclass(frozen=True, slots=True)
class AmbiguousExternalOutcome:
    """The provider may or may not have done it."""

    code: str

    def __post_init__(self) -> None:
        checked_code(self.code, field="code")


WorkExit = Succeeded[ResultT] | RetryBeforeEffect | FailedTerminal | AmbiguousExternalOutcome
"""What an exit-aware executor returns. `code` is the application's own; no text of the provider."""


@final
@dataclass(frozen=True, slots=True)
class Applied(Generic[ResultT_co]):
    """The provider did it, with this result."""

    result: ResultT_co = field(repr=False)


@final
@dataclass(frozen=True, slots=True)
class NotApplied:
    """The provider did not do it and no longer will."""


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider cannot say; the Work stays suspended."""


Evidence = Applied[ResultT] | NotApplied | Unknown
"""What a reconciler returns."""
