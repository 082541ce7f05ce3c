"""Work as operators see it: without payload and without result."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from onecommit.domain.work import PermitId, Safety, WorkId, WorkState


class WorkAction(StrEnum):
    """What an operator can do about Work that waits."""

    RECONCILE = "reconcile"
    """Ask the provider by the registered reconciler."""
    RESOLVE = "resolve"
    """Find out what the provider did, and say it."""
    RETRY_SAFE = "retry_safe"
    """Try once more: the class allows it, or nothing was called."""
    RELEASE = "release"
    """Let it go on under the epoch that is active now."""
    CANCEL = "cancel"
    """Give it up, as far as no effect is unknown: no attempt is left, or none can be prepared."""


class WorkView(msgspec.Struct, frozen=True, kw_only=True):
    """One item of Work as it stands."""

    work_id: WorkId
    scope: str
    state: WorkState
    code: str | None
    """Why it stands so: a code of the protocol or of the application."""
    action: WorkAction | None
    """What an operator can do now; None while it needs nobody."""
    contract_name: str
    contract_version: str
    safety: Safety
    activity_id: UUID
    command_id: str
    idempotency_key: str
    revision: int
    """Rises with every change; a command names the one that its operator has seen."""
    attempt: int
    unresolved: int
    """Calls of the provider whose outcome is unknown."""
    accepted_at: datetime
    due_at: datetime | None
    deadline: datetime | None
    eligible_at: datetime | None
    lease_owner: int | None
    lease_expires_at: datetime | None
    cancel_requested_at: datetime | None
    terminal_at: datetime | None
    purged_at: datetime | None

    @property
    def contract(self) -> str:
        """Name and version, as ``name/version``."""
        return f"{self.contract_name}/{self.contract_version}"


class WorkHistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to Work, or was said about it too late (a quarantined observation)."""

    history_id: int
    at: datetime
    event: str
    from_state: WorkState | None
    to_state: WorkState | None
    revision: int
    attempt: int | None
    lease_generation: int | None
    lease_owner: int | None
    epoch: int
    command_id: str | None
    actor: str | None
    code: str | None
    application_code: str | None
    observation_sha256: bytes | None


class PermitView(msgspec.Struct, frozen=True, kw_only=True):
    """The authority of one attempt to call the provider once, and what became of it."""

    permit_id: PermitId
    attempt: int
    lease_generation: int
    lease_owner: int
    epoch: int
    outcome: str
    """granted, known_succeeded, proven_no_effect or ambiguous."""
    granted_at: datetime
    invocation_admitted_at: datetime | None
    closed_at: datetime | None


class ScopeView(msgspec.Struct, frozen=True, kw_only=True):
    """A scope, and how much of its Work has not ended."""

    scope: str
    generation: int
    state: str
    """active or disabled."""
    created_at: datetime
    disabled_at: datetime | None
    unfinished: int


class WorkCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many unfinished items of one contract stand in one state."""

    scope: str | None
    """Whose they are, if they were counted by scope."""
    contract_name: str
    contract_version: str
    state: WorkState
    items: int
    oldest_at: datetime
    """When the oldest of them was accepted."""

    @property
    def contract(self) -> str:
        """Name and version, as ``name/version``."""
        return f"{self.contract_name}/{self.contract_version}"
