"""The authority to complete one attempt, and the proof that it was completed."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Never, NoReturn, Self

from onecommit.domain.identity import JobId, RunLease
from onecommit.domain.job import Outcome
from onecommit.errors import ForgeryRefused


class PortableToken(NamedTuple):
    """A token as the parameters of the SQL function `complete_job`, for other drivers and languages."""

    job_id: JobId
    run_lease: RunLease
    claim_slot: int
    receipt_id: int
    batch_id: int
    batch_index: int


class _Opaque:
    """A value that only this library makes: no constructor, copy or pickle."""

    __slots__ = ()

    if TYPE_CHECKING:  # no value fits, so a call by hand does not check

        def __new__(cls, made_by_hand: Never, /) -> Self: ...

    else:

        def __new__(cls, *_: Any, **__: Any) -> Self:
            raise ForgeryRefused(f"{cls.__name__} cannot be constructed; it comes with an attempt")

    def __init_subclass__(cls) -> None:
        if not cls.__module__.startswith("onecommit."):
            raise ForgeryRefused(f"{cls.__name__} cannot extend an opaque value")

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot leave its process; use its portable form")


class FinalizationToken(_Opaque):
    """Names exactly one claimed attempt. Comparable; `portable` gives the parameters for SQL."""

    __slots__ = ("_portable",)
    _portable: PortableToken

    @property
    def portable(self) -> PortableToken:
        """The token as parameters of the SQL function `complete_job`."""
        return self._portable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FinalizationToken) and self._portable == other._portable

    def __hash__(self) -> int:
        return hash(self._portable)

    def __setattr__(self, name: str, _: object) -> NoReturn:
        raise AttributeError(f"a token does not change: {name}")

    def __repr__(self) -> str:
        return f"<FinalizationToken of job {self._portable.job_id}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptEvidence:
    """What the finalizing statement returned beside the token."""

    contract_version: int
    outcome: Outcome
    finished_at: datetime
    transaction_id: int


class FinalizationReceipt(_Opaque):
    """Proof that a finalization was made; it counts once its transaction has committed."""

    __slots__ = ("_evidence", "_token")
    if TYPE_CHECKING:  # as `__hash__: None` says of a list that it is no key: see StorableResult
        __sizeof__: None  # type: ignore[assignment]
    _token: FinalizationToken
    _evidence: ReceiptEvidence

    @property
    def job_id(self) -> JobId:
        """The job whose attempt was completed."""
        return self._token.portable.job_id

    @property
    def outcome(self) -> Outcome:
        """The outcome that becomes true with the commit."""
        return self._evidence.outcome

    @property
    def finished_at(self) -> datetime:
        """When the finalization was made, by the clock of the database."""
        return self._evidence.finished_at

    @property
    def transaction_id(self) -> int:
        """The transaction that decides; `pg_xact_status` knows how it ended."""
        return self._evidence.transaction_id

    def belongs_to(self, token: FinalizationToken) -> bool:
        """Whether this is the receipt of that attempt."""
        return getattr(self, "_token", None) == token

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FinalizationReceipt):
            return NotImplemented
        return self._token == other._token and self._evidence == other._evidence

    def __hash__(self) -> int:
        return hash((self._token, self._evidence))

    def __setattr__(self, name: str, _: object) -> NoReturn:
        raise AttributeError(f"a receipt does not change: {name}")

    def __repr__(self) -> str:
        return f"<FinalizationReceipt of job {self.job_id}>"


def issue_token(
    *,
    job_id: JobId,
    run_lease: RunLease,
    claim_slot: int,
    receipt_id: int,
    batch_id: int,
    batch_index: int,
) -> FinalizationToken:
    """The token of one claimed attempt. Internal: only a claim knows these numbers."""
    token = object.__new__(FinalizationToken)
    portable = PortableToken(job_id, run_lease, claim_slot, receipt_id, batch_id, batch_index)
    object.__setattr__(token, "_portable", portable)
    return token


def issue_receipt(token: FinalizationToken, evidence: ReceiptEvidence) -> FinalizationReceipt:
    """The receipt that the finalizing statement returned. Internal: made from its result alone."""
    receipt = object.__new__(FinalizationReceipt)
    object.__setattr__(receipt, "_token", token)
    object.__setattr__(receipt, "_evidence", evidence)
    return receipt
