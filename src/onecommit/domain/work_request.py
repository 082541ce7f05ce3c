"""What one acceptance asks for, checked before anything is sent."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from onecommit.domain.arguments import checked_flag
from onecommit.domain.work import LARGEST_WORK_PAYLOAD, Safety
from onecommit.domain.work_identifier import checked_identifier, checked_version
from onecommit.domain.work_policy import DEFAULT_WORK_RETRY, WorkPlan, WorkRetry, absolute_time
from onecommit.errors import InvalidWork

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRequest:
    """One request with both its identities and everything that its fingerprint covers."""

    scope: str
    command_id: str
    idempotency_key: str
    contract_name: str
    contract_version: str
    exit_aware: bool = False
    codec: str = "json"
    classification: str = "unclassified"
    retention_id: str = "default"
    payload: bytes = field(repr=False)
    safety: Safety
    retry: WorkRetry = DEFAULT_WORK_RETRY
    plan: WorkPlan | None = None
    """Its slots stand for the attempts, in place of `retry.max_attempts`."""
    deadline: datetime | None = None
    due_at: datetime | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        names = ("scope", "command_id", "idempotency_key", "contract_name", "codec")
        for name in (*names, "classification", "retention_id"):
            checked_identifier(getattr(self, name), field=name)
        checked_version(self.contract_version, field="contract_version")
        self._check_payload()
        self._check_safety()
        check_retry(self.retry)
        self._check_times()
        check_priority(self.priority)

    @property
    def is_planned(self) -> bool:
        """Whether an execution policy v1 applies: a plan, or a deadline alone."""
        return self.plan is not None or self.deadline is not None

    @property
    def max_attempts(self) -> int:
        """How many attempts there may be."""
        return self.retry.max_attempts if self.plan is None else len(self.plan.offsets)

    def _check_payload(self) -> None:
        payload: object = self.payload
        if not isinstance(payload, bytes) or len(payload) > LARGEST_WORK_PAYLOAD:
            raise InvalidWork(
                f"`payload` is not at most {LARGEST_WORK_PAYLOAD} bytes",
                field="payload",
                remedy="Store the data and pass its key.",
            )

    def _check_safety(self) -> None:
        checked_flag(self.exit_aware, field="exit_aware")
        check_safety(self.safety, exit_aware=self.exit_aware)
        object.__setattr__(self, "safety", Safety(self.safety))

    def _check_times(self) -> None:
        for name in ("deadline", "due_at"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, absolute_time(moment, field=name))
        if self.plan is not None:
            self._check_plan(self.plan)
        if self.due_at is not None and self.deadline is not None and self.due_at >= self.deadline:
            raise InvalidWork("`due_at` is not before `deadline`", field="due_at")

    def _check_plan(self, plan: object) -> None:
        if not isinstance(plan, WorkPlan):
            raise InvalidWork("`plan` is not a WorkPlan", field="plan")
        if self.due_at is not None:
            raise InvalidWork(
                "`due_at` is given with a plan, which begins with its acceptance", field="due_at"
            )
        if self.retry.max_elapsed < plan.circuit:
            raise InvalidWork("`max_elapsed` is below the plan's `circuit`", field="max_elapsed")


def check_safety(safety: Any, *, exit_aware: bool) -> None:
    """Raise unless it is one of the four, and the one of typed exits for them."""
    if safety not in list(Safety):
        raise InvalidWork(
            "`safety` is not idempotent, provider_keyed, reconcile_before_retry or manual_resolution",
            field="safety",
        )
    if exit_aware and safety != Safety.PROVIDER_KEYED:
        raise InvalidWork("typed exits need the safety PROVIDER_KEYED", field="safety")


def check_retry(retry: object) -> None:
    """Raise unless it is the policy of Work, which is not that of jobs."""
    if not isinstance(retry, WorkRetry):
        raise InvalidWork(
            "`retry` is not a WorkRetry",
            field="retry",
            remedy="Work has a policy of its own: retry=WorkRetry(max_attempts=3).",
        )


def check_priority(priority: object) -> None:
    """Raise unless it is between the lowest and the highest; the higher goes first."""
    if type(priority) is not int or not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise InvalidWork(
            f"`priority` is not between {LOWEST_PRIORITY} and {HIGHEST_PRIORITY}", field="priority"
        )
