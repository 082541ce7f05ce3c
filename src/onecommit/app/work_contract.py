"""The immutable contract of one kind of Work, known by name and version."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from onecommit.domain.arguments import checked_flag
from onecommit.domain.payload import JsonValue
from onecommit.domain.work import LARGEST_WORK_PAYLOAD, Safety
from onecommit.domain.work_identifier import checked_identifier, checked_version
from onecommit.domain.work_policy import DEFAULT_WORK_RETRY, WorkPlan, WorkRetry
from onecommit.domain.work_request import WorkRequest, check_retry, check_safety
from onecommit.errors import InvalidArgument, InvalidWork

T = TypeVar("T")

CODEC = "json"
"""How payloads and results travel: JSON with sorted fields."""


# No slots: cached properties live in the instance.
@dataclass(frozen=True, kw_only=True)
class WorkContract:
    """What holds for every Work of this name and version. It is no row, and authorizes nothing."""

    name: str
    version: str
    payload: Any
    result: Any
    safety: Safety
    retry: WorkRetry = DEFAULT_WORK_RETRY
    exits: bool = False
    classification: str = "unclassified"
    retention_id: str = "default"

    def __post_init__(self) -> None:
        checked_identifier(self.name, field="name")
        checked_version(self.version, field="version")
        checked_identifier(self.classification, field="classification")
        checked_identifier(self.retention_id, field="retention_id")
        checked_flag(self.exits, field="exits")
        check_safety(self.safety, exit_aware=self.exits)
        object.__setattr__(self, "safety", Safety(self.safety))
        check_retry(self.retry)

    @property
    def key(self) -> tuple[str, str]:
        """Name and version."""
        return self.name, self.version

    def request(
        self,
        payload: Any,
        *,
        scope: str,
        command_id: str,
        idempotency_key: str,
        due_at: datetime | None = None,
        deadline: datetime | None = None,
        plan: WorkPlan | None = None,
        priority: int = 0,
    ) -> WorkRequest:
        """The request that a raw caller would write by hand.

        Raises:
            InvalidWork: Something does not fit the contract or the protocol.
        """
        return WorkRequest(
            scope=scope,
            command_id=command_id,
            idempotency_key=idempotency_key,
            contract_name=self.name,
            contract_version=self.version,
            exit_aware=self.exits,
            codec=CODEC,
            classification=self.classification,
            retention_id=self.retention_id,
            payload=self.encode_payload(payload),
            safety=self.safety,
            retry=self.retry,
            plan=plan,
            deadline=deadline,
            due_at=due_at,
            priority=priority,
        )

    def encode_payload(self, payload: Any) -> bytes:
        """The bytes of a payload, if it fits."""
        return _as_work(self._payload.encode, payload)

    def decode_payload(self, encoded: bytes) -> Any:
        """The payload of accepted Work, as its type."""
        return _as_work(self._payload.decode, encoded)

    def encode_result(self, result: Any) -> bytes:
        """The bytes of a result, if it fits."""
        return _as_work(self._result.encode, result)

    def decode_result(self, encoded: bytes) -> Any:
        """The result of succeeded Work, as its type."""
        return _as_work(self._result.decode, encoded)

    def check_types(self) -> None:
        """Raise for types that cannot travel; else the first payload would."""
        _ = self._payload, self._result

    @cached_property
    def _payload(self) -> JsonValue:
        return self._value_of(self.payload, what="payload")

    @cached_property
    def _result(self) -> JsonValue:
        return self._value_of(self.result, what="result")

    def _value_of(self, expected: Any, *, what: str) -> JsonValue:
        try:
            return JsonValue(expected, what=what, largest=LARGEST_WORK_PAYLOAD)
        except (TypeError, NameError) as error:
            raise InvalidWork(
                f"the {what} type of {self.name}/{self.version} cannot be read from JSON",
                field=what,
                remedy="Use a dataclass, Struct, TypedDict, attrs class or pydantic model.",
            ) from error


def _as_work(convert: Callable[[Any], T], value: Any) -> T:
    """Refusals as those of Work, and without a cause, whose text can repeat a value."""
    try:
        return convert(value)
    except InvalidArgument as error:
        refused = InvalidWork(error.message, field=error.field, remedy=error.remedy or None)
    raise refused
