"""What operators command about Work, and what comes of it."""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from onecommit.domain.arguments import checked_bytes, checked_number, checked_text
from onecommit.domain.work import PermitId, WorkId, WorkState
from onecommit.domain.work_identifier import checked_identifier


class CommandOutcome(StrEnum):
    """What a command did."""

    CANCELED = "canceled"
    """No effect can have happened, and none will."""
    REQUESTED = "requested"
    """The admitted attempt is asked to stop."""
    SUSPENDED = "suspended"
    """It is canceled as far as it can be, and waits for evidence."""
    RECORDED = "recorded"
    """Evidence was recorded."""
    RELEASED = "released"
    """It is tried again, or waits for evidence by its safety class."""
    DISABLED = "disabled"
    PREVIEW = "preview"
    """Nothing: this is what it would be done to."""
    DUPLICATE = "duplicate"
    """Nothing: this command was given before, and this is what it led to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command did, and how the Work stands since."""

    outcome: CommandOutcome
    state: WorkState
    code: str | None
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedWork(CommandResult):
    """The same for one item of a release in bulk."""

    work_id: WorkId


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDisabling:
    """What came of disabling a scope."""

    outcome: CommandOutcome
    generation: int
    projected: int | None
    """Items of Work that were canceled or suspended by it; None in a duplicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunReconciliation:
    """What a reconciler is asked about, for as long as the command's lease lasts."""

    permit_id: PermitId
    attempt: int
    activity_id: UUID
    contract: tuple[str, str]
    codec: str
    payload: bytes = field(repr=False)
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedEvidence:
    """Evidence as it travels: ``applied`` with the result's bytes and their codec, ``not_applied`` or ``unknown``."""

    evidence: str
    result: bytes | None = field(default=None, repr=False)
    codec: str | None = None

    def __post_init__(self) -> None:
        checked_text(self.evidence, field="evidence")
        if self.result is not None:
            checked_bytes(self.result, field="result")
        if self.codec is not None:
            checked_text(self.codec, field="codec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The identity of a command within its scope, who gives it and why; all are kept."""

    scope: str
    command_id: str
    actor: str
    reason: str

    def __post_init__(self) -> None:
        checked_identifier(self.scope, field="scope")
        checked_identifier(self.command_id, field="command_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAction:
    """What somebody asks to do, for the host to allow or to refuse."""

    operation: str
    """cancel, reconcile, resolve, retry_safe, release, release_all, purge or disable_scope."""
    actor: str
    reason: str
    scope: str | None = None
    """None: of any scope."""
    work_id: int | None = None

    def __post_init__(self) -> None:
        # Before the host is asked: its function need not expect anything else.
        checked_text(self.actor, field="actor")
        checked_text(self.reason, field="reason")
        if self.scope is not None:
            checked_identifier(self.scope, field="scope")
        if self.work_id is not None:
            checked_number(self.work_id, field="work_id")
