"""Asking a registered reconciler what an attempt did at the provider."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onecommit.app.work_contract import CODEC, WorkContract
from onecommit.domain.work import WorkId, WorkInquiry
from onecommit.domain.work_command import BegunReconciliation, EncodedEvidence
from onecommit.domain.work_exit import Applied, NotApplied, Unknown
from onecommit.errors import ContractUnavailable, UsageError

if TYPE_CHECKING:
    from onecommit.app.work import Reconciler, Work
    from onecommit.app.work_registry import WorkRegistry


def contract_of(registry: "WorkRegistry", name: str, version: str) -> "Work[Any, Any]":
    """The registered Work of a contract.

    Raises:
        ContractUnavailable: This application does not know it.
    """
    work = registry.get(name, version)
    if work is None:
        raise ContractUnavailable(
            f"{name}/{version} is not registered in this application",
            remedy="Import the module that registers it, and give the command again.",
        )
    return work


def reconciler_of(work: "Work[Any, Any]") -> "Reconciler":
    """The function that asks the provider, if there is one."""
    if work.reconciles is None:
        raise ContractUnavailable(
            f"{work.label} has no reconciler in this application",
            remedy="Register it: @work.reconciler.",
        )
    return work.reconciles


class Reconciliation:
    """One question to the provider. No connection is held while it is asked."""

    def __init__(
        self, work: "Work[Any, Any]", begun: BegunReconciliation, *, scope: str, work_id: int
    ) -> None:
        if begun.codec != CODEC:
            raise ContractUnavailable(f"the payload of Work {work_id} is not of the codec {CODEC}")
        self._contract = work.contract
        self._reconciler = reconciler_of(work)
        self._payload = work.contract.decode_payload(begun.payload)
        self._inquiry = WorkInquiry(
            scope=scope,
            work_id=WorkId(work_id),
            activity_id=begun.activity_id,
            attempt=begun.attempt,
        )

    async def async_ask(self) -> EncodedEvidence:
        """What the provider says; a `def` reconciler runs in a thread."""
        ask = self._reconciler.function
        if self._reconciler.is_async:
            return self._encoded(await ask(self._inquiry, self._payload))
        return self._encoded(await asyncio.to_thread(ask, self._inquiry, self._payload))

    def sync_ask(self) -> EncodedEvidence:
        """The same; an `async def` reconciler runs in an event loop of its own."""
        answer = self._reconciler.function(self._inquiry, self._payload)
        if self._reconciler.is_async:
            answer = asyncio.run(answer)
        return self._encoded(answer)

    def _encoded(self, evidence: object) -> EncodedEvidence:
        return encoded(evidence, lambda: self._contract)


def encoded(evidence: object, contract: Callable[[], WorkContract]) -> EncodedEvidence:
    """Evidence with its result as the contract encodes it, which is asked for only if there is one."""
    match evidence:
        case Applied(result):
            encoded_result = contract().encode_result(result)
            return EncodedEvidence(evidence="applied", result=encoded_result, codec=CODEC)
        case NotApplied():
            return EncodedEvidence(evidence="not_applied")
        case Unknown():
            return EncodedEvidence(evidence="unknown")
        case EncodedEvidence():
            return evidence
        case _:
            raise UsageError(
                f"{type(evidence).__name__} is no evidence",
                remedy="Give Applied(result), NotApplied() or Unknown().",
            )
