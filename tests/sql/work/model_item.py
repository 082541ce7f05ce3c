"""One item of Work as the text describes it: when it may be tried, what is unknown about it, where its end leads."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from onecommit.domain.work_request import WorkRequest

TERMINAL = ("succeeded", "succeeded_after_cancel_requested", "failed", "canceled_before_effect")
LEASED = ("leased", "effect_permitted", "cancel_pending")
WAITING = ("pending", "retry_wait")
SAFE = ("idempotent", "provider_keyed")
MISMATCH = "runtime_epoch_mismatch"
RECONCILIATION = "suspended_reconciliation_required"
AMBIGUOUS = "suspended_ambiguous_external_outcome"
MANUAL = "suspended_manual_resolution"
UNAVAILABLE = "suspended_contract_unavailable"
BY_CLASS = {"reconcile_before_retry": RECONCILIATION, "manual_resolution": MANUAL}
# After these a next attempt is asked for; a cancellation, a success and a final failure want none.
RETRYING = ("exception", "lease_expired", "retry_before_effect", "ambiguous", "compatibility")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What names the holder of one attempt."""

    work_id: int
    attempt: int
    lease_generation: int
    scope_generation: int
    owner: int
    epoch: int


@dataclass(slots=True, kw_only=True)
class Permit:
    """The authority for one call of the provider."""

    attempt: int
    lease_generation: int
    epoch: int
    outcome: str = "granted"
    admitted_at: datetime | None = None

    def may_have_had_an_effect(self, epoch: int) -> bool:
        """Its outcome is unknown; or it is open and was admitted, or a restore may have lost its admission."""
        admitted = self.admitted_at is not None or self.epoch != epoch
        return self.outcome == "ambiguous" or (self.outcome == "granted" and admitted)

    def close(self, epoch: int) -> None:
        """As recovery, a cancellation or a disabled scope finds it."""
        if self.outcome == "granted":
            may = self.may_have_had_an_effect(epoch)
            self.outcome = "ambiguous" if may else "proven_no_effect"


@dataclass(slots=True, kw_only=True)
class Item:
    """Work, its permits and its history."""

    work_id: int
    request: WorkRequest
    accepted_at: datetime
    eligible_at: datetime
    epoch: int
    state: str = "pending"
    revision: int = 1
    attempt: int = 0
    authorized: int = 0
    lease_generation: int = 0
    owner: int | None = None
    request_number: int | None = None
    lease_started_at: datetime | None = None
    lease_expires_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    code: str | None = None
    closed_at: datetime | None = None
    closed_reason: str | None = None
    deadline_reached_at: datetime | None = None
    terminal_at: datetime | None = None
    purged: bool = False
    kept: bool = False
    """A purge has passed it by for good."""
    result: bytes | None = None
    permits: list[Permit] = field(default_factory=list)
    moves: list[tuple[int, str]] = field(default_factory=lambda: [(1, "pending")])
    told: set[tuple[Any, ...]] = field(default_factory=set)
    observed: set[tuple[Any, ...]] = field(default_factory=set)

    # --- time

    @property
    def offsets(self) -> tuple[timedelta, ...] | None:
        return self.request.plan and self.request.plan.offsets

    @property
    def cutoff(self) -> datetime | None:
        """When no attempt is admitted any more, which only an execution policy says."""
        if not self.request.is_planned:
            return None
        return min(moment for moment, _ in self._cutoffs())

    def moments(self) -> list[datetime]:
        """Those at which some answer about it changes."""
        retry = self.request.retry
        found = {self.eligible_at, self.lease_expires_at, self.accepted_at + retry.max_elapsed}
        found |= {moment for moment, _ in self._cutoffs()}
        if self.lease_started_at is not None:
            found.add(self.lease_started_at + retry.max_lease)
        return sorted(found - {None})

    def _cutoffs(self) -> list[tuple[datetime, str]]:
        """Of those that coincide the first is named."""
        found = [(self.accepted_at + self.request.retry.max_elapsed, "elapsed")]
        if self.request.plan is not None:
            found.insert(0, (self.accepted_at + self.request.plan.circuit, "circuit"))
        if self.request.deadline is not None:
            found.insert(0, (self.request.deadline, "deadline"))
        return found

    def closed(self, now: datetime) -> str | None:
        """Why no attempt may be admitted; what was once seen stays, should the clock step back."""
        if self.closed_reason is not None:
            return self.closed_reason
        if self.deadline_reached_at is not None:
            return "deadline"
        if self.cutoff is None or now < self.cutoff:
            return None
        return next(reason for moment, reason in self._cutoffs() if moment == self.cutoff)

    def next_attempt(
        self, now: datetime, *, at_once: bool = False
    ) -> tuple[datetime | None, str | None]:
        """When the attempt after this one is eligible, or why there is none. `at_once`: without a delay."""
        retry = self.request.retry
        allowed = self.request.max_attempts + (0 if self.offsets else self.authorized)
        closed = self.closed(now) or ("attempts" if self.attempt >= allowed else None)
        if closed is not None:
            return None, closed
        if self.offsets:
            eligible = self.accepted_at + self.offsets[self.attempt]
        elif at_once:
            eligible = now
        else:
            doubled = retry.initial_delay * 2 ** (max(self.attempt, 1) - 1)
            eligible = now + min(retry.max_delay, doubled)
        if self.request.is_planned:
            closed = "attempts" if eligible >= self.cutoff else None
        elif eligible >= self.accepted_at + retry.max_elapsed:
            closed = "elapsed"
        return (None, closed) if closed else (eligible, None)

    # --- evidence

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def permit(self) -> Permit | None:
        """Of the current attempt and lease."""
        key = (self.attempt, self.lease_generation)
        return next((p for p in self.permits if (p.attempt, p.lease_generation) == key), None)

    @property
    def admitted(self) -> bool:
        return self.permit is not None and self.permit.admitted_at is not None

    def unresolved(self, epoch: int) -> list[Permit]:
        """Permits that may have had an effect, oldest first."""
        return [p for p in self.permits if p.may_have_had_an_effect(epoch)]

    @property
    def suspended_by_class(self) -> str:
        return BY_CLASS.get(self.request.safety, AMBIGUOUS)

    def fence(self) -> Fence:
        assert self.owner is not None
        return Fence(
            work_id=self.work_id,
            attempt=self.attempt,
            lease_generation=self.lease_generation,
            scope_generation=1,
            owner=self.owner,
            epoch=self.epoch,
        )

    def holds(self, fence: Fence, now: datetime) -> bool:
        """Whether this is the live lease; a lease has ended at its expiry."""
        return self.state in LEASED and fence == self.fence() and now < self.lease_expires_at

    # --- moves

    def step(self, state: str) -> None:
        """The next revision, which the history tells."""
        self.state = state
        self.revision += 1
        self.moves.append((self.revision, state))

    def move(
        self, state: str, code: str | None, now: datetime, *, closed: str | None = None
    ) -> None:
        """Without a lease, with what is seen of the cutoffs."""
        # Before the cutoff only a plan is over, for want of a slot.
        reason = self.closed(now) or (closed if self.offsets else None)
        if self.request.is_planned and self.closed_reason is None and reason is not None:
            self.closed_at, self.closed_reason = now, reason
        deadline = self.request.deadline
        if self.deadline_reached_at is None and deadline is not None and now >= deadline:
            self.deadline_reached_at = now
        self.owner = self.request_number = None
        self.lease_started_at = self.lease_expires_at = None
        self.code = code
        self.step(state)
        if self.terminal:
            self.terminal_at = now

    def ended(self, event: str, epoch: int, closed: str | None) -> str:
        """Where an end leads: the table of safety classes, cell by cell."""
        canceled = self.cancel_requested_at is not None
        if event == "succeeded":
            return "succeeded_after_cancel_requested" if canceled else "succeeded"
        if self.unresolved(epoch):
            retried = event in ("exception", "lease_expired", "retry_before_effect")
            safe = self.request.safety in SAFE
            if retried and safe and not canceled and closed is None:
                return "retry_wait"
            return self.suspended_by_class
        if canceled:
            return "canceled_before_effect"
        if event in ("failed_terminal", "cutoff") or closed is not None:
            return "failed"
        return "retry_wait"

    def end(self, event: str, epoch: int, now: datetime, *, code: str | None = None) -> None:
        """An attempt's end, or what is decided about Work without a live attempt."""
        eligible, closed = None, None
        if event in RETRYING:
            eligible, closed = self.next_attempt(now)
        elif event == "cutoff":
            closed = self.closed(now)
        state = self.ended(event, epoch, closed)
        self.eligible_at = eligible or self.eligible_at
        self.move(state, self.end_code(state, closed, code), now, closed=closed)

    def end_code(self, state: str, closed: str | None, own: str | None) -> str | None:
        """106 outranks all; then 121 for the deadline and 120 for the rest of a policy; then the application's."""
        if state.startswith("suspended"):
            return "ASDUR106"
        if state != "failed" or closed is None:
            return own
        if closed == "deadline":
            return "ASDUR121"
        return "ASDUR120" if self.request.is_planned else own or closed

    @property
    def dispatch(self) -> tuple[str, datetime | None] | None:
        """Its state, and when discovery shows it or since when it is terminal."""
        if self.purged or self.kept:
            return None
        if self.terminal:
            return "terminal", self.terminal_at
        if self.state in LEASED:
            return "leased", self.lease_expires_at
        if self.state in WAITING:
            return "available", min(self.eligible_at, self.cutoff or self.eligible_at)
        return "suspended", None
