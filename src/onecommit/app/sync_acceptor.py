# Generated from async_acceptor.py by tools/generate_sync.py: edit that file, then `make sync`.
"""Accepting Work of one contract."""

from datetime import datetime
from typing import Generic, TypeVar

from onecommit.app.stores import Stores
from onecommit.app.work_contract import WorkContract
from onecommit.calls.work_acceptance import accept_work
from onecommit.domain.work import Acceptance
from onecommit.domain.work_policy import WorkPlan
from onecommit.domain.work_request import WorkRequest
from onecommit.drivers.driver import SyncDriver

PayloadT = TypeVar("PayloadT")


class SyncAcceptor(Generic[PayloadT]):
    """Accepts Work of one contract on a connection of the App, or in a caller's transaction."""

    def __init__(
        self, contract: WorkContract, stores: Stores, *, driver: SyncDriver | None = None
    ) -> None:
        self.contract = contract
        self._stores = stores
        self._driver = driver

    def accept(
        self,
        payload: PayloadT,
        *,
        scope: str,
        command_id: str,
        idempotency_key: str,
        due_at: datetime | None = None,
        deadline: datetime | None = None,
        plan: WorkPlan | None = None,
        priority: int = 0,
    ) -> Acceptance:
        """Accept the Work once for each command id and each idempotency key of the scope.

        Args:
            payload: What the executor gets.
            scope: Whom it is for, such as a tenant; the first use creates it.
            command_id: Names this request; repeat it with the request.
            idempotency_key: The second identity, such as the event's own id at its sender.
            due_at: No attempt before this moment. Absolute, so that a repeat is the same request.
            deadline: No attempt, and no success, at or after this moment.
            plan: Fixed slots instead of the contract's back-off.
            priority: -100 to 100; of Work that is due at the same time the higher goes first.

        Raises:
            InvalidWork: An argument is refused; nothing was sent.
            CommandConflict: The command id or the idempotency key stands for another request.
            ScopeDisabled: The scope is a tombstone.
            WorkError: What else the protocol answers. The caller's transaction stays usable.
            SavepointRefused: The transaction is inside a savepoint; it can only be rolled back.
        """
        request = self.contract.request(
            payload,
            scope=scope,
            command_id=command_id,
            idempotency_key=idempotency_key,
            due_at=due_at,
            deadline=deadline,
            plan=plan,
            priority=priority,
        )
        return self._accept(request)

    def _accept(self, request: WorkRequest) -> Acceptance:
        if self._driver is None:
            store = self._stores.sync_store()
            return store.run(accept_work(request, store_id=store.store_id, epoch=store.epoch))
        target = self._stores.sync_target(self._driver)
        return self._driver.run(accept_work(request, store_id=target.store_id, epoch=target.epoch))
