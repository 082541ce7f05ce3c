"""Work: an effect at a provider, accepted once and done under a permit."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType
from uuid import UUID

from onecommit.domain.identity import Epoch, WorkerId

WorkId = NewType("WorkId", int)
PermitId = NewType("PermitId", int)
"""Names the authority of one attempt for one invocation of the provider."""

LARGEST_WORK_PAYLOAD = 262_144
"""Bytes that the payload or the result of one Work may have."""
EXIT_CAPABILITY = "work_exit_v1"
"""What a worker advertises that understands typed exits."""


class Safety(StrEnum):
    """What may be done while nobody knows whether the provider did it."""

    IDEMPOTENT = "idempotent"
    """Doing it twice is doing it once: it is tried again."""
    PROVIDER_KEYED = "provider_keyed"
    """The provider knows `activity_id` as its key: it is tried again with the same key."""
    RECONCILE_BEFORE_RETRY = "reconcile_before_retry"
    """It waits until the definition's reconciler has found out."""
    MANUAL_RESOLUTION = "manual_resolution"
    """It waits for an operator."""


class WorkState(StrEnum):
    """Where Work stands."""

    PENDING = "pending"
    LEASED = "leased"
    EFFECT_PERMITTED = "effect_permitted"
    RETRY_WAIT = "retry_wait"
    CANCEL_PENDING = "cancel_pending"
    SUCCEEDED = "succeeded"
    SUCCEEDED_AFTER_CANCEL_REQUESTED = "succeeded_after_cancel_requested"
    FAILED = "failed"
    CANCELED_BEFORE_EFFECT = "canceled_before_effect"
    SUSPENDED_AMBIGUOUS_EXTERNAL_OUTCOME = "suspended_ambiguous_external_outcome"
    SUSPENDED_RECONCILIATION_REQUIRED = "suspended_reconciliation_required"
    SUSPENDED_MANUAL_RESOLUTION = "suspended_manual_resolution"
    SUSPENDED_CONTRACT_UNAVAILABLE = "suspended_contract_unavailable"

    @property
    def is_terminal(self) -> bool:
        """Whether it never changes again."""
        return self in _TERMINAL

    @property
    def is_suspended(self) -> bool:
        """Whether it waits for evidence or for an operator; neither terminal nor tried by itself."""
        return self.value.startswith("suspended_")


_TERMINAL = frozenset(
    {
        WorkState.SUCCEEDED,
        WorkState.SUCCEEDED_AFTER_CANCEL_REQUESTED,
        WorkState.FAILED,
        WorkState.CANCELED_BEFORE_EFFECT,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The Work exists once the transaction commits."""

    work_id: WorkId
    activity_id: UUID
    """The key under which the provider will know it."""
    command_id: str
    revision: int
    accepted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The same Work was accepted before; these are its facts, not those of this request."""

    work_id: WorkId
    activity_id: UUID
    command_id: str
    """Of the original; it differs if only the idempotency key was repeated."""
    revision: int
    accepted_at: datetime


Acceptance = Accepted | Duplicate


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFence:
    """What an operation of a live attempt must match exactly; the revision is no part of it."""

    scope: str
    work_id: WorkId
    attempt: int
    lease_generation: int
    scope_generation: int
    owner: WorkerId
    epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkInquiry:
    """The attempt whose effect a reconciler is asked about."""

    scope: str
    work_id: WorkId
    activity_id: UUID
    """The key under which the provider knows it."""
    attempt: int
