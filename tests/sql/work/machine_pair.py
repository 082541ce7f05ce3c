"""The store and its model, asked the same and compared: in their answers, and in their rows after each step."""

from datetime import datetime
from typing import Any

from onecommit.domain.work_request import WorkRequest

from tests.sql.work.machine_calls import Calls
from tests.sql.work.machine_ledger import Ledger, compare, rows
from tests.sql.work.model import Answer
from tests.sql.work.model_item import Fence, Item
from tests.sql.work.model_operators import OperatedModel
from tests.works import NOON


def agree(row: Any, answer: Answer) -> None:
    """Raise unless the store said so too."""
    assert (row.outcome, row.code) == (answer.outcome, answer.code), (row, answer)


class Pair:
    """One scope of the store and its model, at noon."""

    def __init__(self, calls: Calls, scope: str) -> None:
        self.calls = calls
        self.calls.enter(scope)
        self.calls.works.clock.stop(NOON)
        self.model = OperatedModel(now=NOON, epoch=calls.epoch)
        self.ledger = Ledger()
        self.fences: list[Fence] = []
        self.given: list[tuple[str, str, dict[str, Any]]] = []

    def check(self) -> None:
        """The rows hold what they promise by themselves, and are what the model says."""
        seen = rows(self.calls.works.store, self.calls.scope)
        self.ledger.check(seen, epoch=self.model.epoch)
        compare(seen, self.model)

    def set_clock(self, moment: datetime) -> None:
        self.calls.works.clock.stop(moment)
        self.model.now = moment

    def rotate(self) -> None:
        self.calls.rotate()
        self.model.epoch = self.calls.epoch

    def purge(self) -> None:
        assert self.calls.purge() == self.model.purge()

    def accept(self, request: WorkRequest) -> None:
        row = self.calls.accept(request)
        answer, found = self.model.accept(request, self.calls.epoch)
        agree(row, answer)
        if answer.outcome == "accepted":
            self.model.add(row.work_id, request)
        if found is not None:
            told = (row.work_id, row.command_id, row.revision, row.accepted_at)
            original = (found.work_id, found.request.command_id, found.revision, found.accepted_at)
            assert told == original

    # --- workers

    def claim(self, items: list[tuple[int, int]], owner: int, number: int) -> None:
        claimed = self.calls.claim(items, owner, number)
        answers = self.model.claim(items, owner, number, self.calls.epoch)
        for row, answer in zip(claimed, answers, strict=True):
            agree(row, answer)
            if answer.outcome == "claimed":
                self._is_handed(row, self.model.items[row.work_id])

    def _is_handed(self, row: Any, item: Item) -> None:
        """What a claim hands to its worker is the lease that the model knows."""
        fence = item.fence()
        told = (row.attempt, row.lease_generation, row.scope_generation, row.lease_expires_at)
        leased = (fence.attempt, fence.lease_generation, 1, item.lease_expires_at)
        assert (*told, row.revision) == (*leased, item.revision)
        assert row.payload == item.request.payload
        if fence not in self.fences:
            self.fences.append(fence)

    def renew(self, fence: Fence) -> None:
        row, answer = self.calls.renew(fence), self.model.renew(fence)
        agree(row, answer)
        if answer.outcome == "renewed":
            item = self.model.items[fence.work_id]
            told = (row.lease_expires_at, row.revision, row.cancellation_requested)
            requested = item.cancel_requested_at is not None
            assert told == (item.lease_expires_at, item.revision, requested)

    def permit(self, fence: Fence) -> None:
        agree(self.calls.by_fence("acquire_permit", fence), self.model.permit(fence))

    def admit(self, fence: Fence) -> None:
        agree(self.calls.by_fence("admit_invocation", fence), self.model.admit(fence))

    def suspend(self, fence: Fence) -> None:
        agree(self.calls.by_fence("suspend_contract", fence), self.model.suspend(fence))

    def complete(self, fence: Fence, event: str, code: str | None, result: bytes | None) -> None:
        row = self.calls.complete(fence, event, code, result)
        agree(row, self.model.complete(fence, event, code, result))

    def hand_off(self, fence: Fence, *, late: bool, commits: bool) -> None:
        """`late`: the lease ends between the two looks."""
        store = {"p_store_id": self.calls.store_id}
        with self.calls.acceptor.open() as caller:
            answer = self.model.handoff(fence)
            agree(self.calls.by_fence("handoff_lock", fence, **store), answer)
            if answer.outcome == "held":
                if late:
                    self.set_clock(self.model.items[fence.work_id].lease_expires_at)
                row = self.calls.by_fence("handoff_check", fence, **store)
                agree(row, self.model.handoff(fence))
            if not commits:
                caller.rollback()

    # --- operators

    def command(self, function: str, command_id: str, **arguments: Any) -> None:
        """Answered alike, also in how the Work stands after it."""
        self.given.append((function, command_id, arguments))
        answered = self.calls.command(function, command_id, **arguments)
        expected = getattr(self.model, function)(command_id, **arguments)
        if function == "release_recoveries":
            told = [(r.work_id, Answer(r.outcome, r.code, r.state, r.revision)) for r in answered]
            assert told == expected
            return
        [row] = answered
        names = [name for name in Answer._fields if hasattr(row, name)]
        told = {name: getattr(row, name) for name in names}
        assert told == {name: getattr(expected, name) for name in names}, (told, expected)
        if function == "disable_scope" and expected.revision is not None:
            assert row.generation == expected.revision
