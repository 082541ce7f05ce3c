"""The Work protocol as the text describes it, for one scope: every operation's answer and effect, in plain Python."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from onecommit.domain.work_request import WorkRequest

from tests.sql.work.model_item import LEASED, MISMATCH, UNAVAILABLE, WAITING, Fence, Item, Permit


class Answer(NamedTuple):
    """What an operation says."""

    outcome: str
    code: str | None = None
    state: str | None = None
    revision: int | None = None


@dataclass(slots=True, kw_only=True)
class Command:
    """What an operator's command id stands for."""

    operation: str
    arguments: dict[str, Any]
    answer: Answer | None = None
    """None: begun."""
    work_id: int | None = None
    revision: int | None = None
    expires_at: datetime | None = None
    permit: Permit | None = None
    evidence: tuple[str, bytes | None] | None = None


def refused(code: str, item: Item | None = None) -> Answer:
    """With how the Work stands, where an operator is told so."""
    return Answer("refused", code, item and item.state, item and item.revision)


@dataclass(slots=True, kw_only=True)
class Model:
    """One scope, its Work and its commands, at one moment of the store's clock."""

    now: datetime
    epoch: int
    generation: int = 0
    disabled: bool = False
    items: dict[int, Item] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)

    def prologue(self, epoch: int, generation: int | None = None) -> str | None:
        """Epoch, scope, generation: in this order."""
        if epoch != self.epoch:
            return "ASDUR108"
        if self.generation == 0:
            return "ASDUR113"
        if self.disabled:
            return "ASDUR107"
        return "ASDUR114" if generation not in (None, self.generation) else None

    def fenced(self, fence: Fence) -> tuple[Item | None, str | None]:
        """The item whose live lease this is, or why it is none."""
        item = self.items.get(fence.work_id)
        if item is None:
            return None, "ASDUR111"
        if item.terminal:
            return item, "ASDUR110"
        return item, None if item.holds(fence, self.now) else "ASDUR105"

    # --- acceptance

    def accept(self, request: WorkRequest, epoch: int) -> tuple[Answer, Item | None]:
        """Accepted without an item: the caller adds it under the id that the store gave."""
        code = self.prologue(epoch)
        if code not in (None, "ASDUR113"):
            return refused(code), None
        by_command = self._known("command_id", request)
        by_key = self._known("idempotency_key", request)
        found = by_command or by_key
        if by_command is not None and by_key is not None and by_command is not by_key:
            return refused("ASDUR102"), None
        if found is not None:
            same = identical(found.request) == identical(request)
            return (Answer("duplicate"), found) if same else (refused("ASDUR102"), None)
        if request.deadline is not None and request.deadline <= self.now:
            return refused("ASDUR121"), None
        self.generation = self.generation or 1
        return Answer("accepted"), None

    def _known(self, identity: str, request: WorkRequest) -> Item | None:
        asked = getattr(request, identity)
        return next((i for i in self.items.values() if getattr(i.request, identity) == asked), None)

    def add(self, work_id: int, request: WorkRequest) -> None:
        self.items[work_id] = Item(
            work_id=work_id,
            request=request,
            accepted_at=self.now,
            eligible_at=request.due_at or self.now,
            epoch=self.epoch,
        )

    # --- discovery and claims

    def due(self) -> list[tuple[int, int]]:
        """What discovery shows, the longest due first."""
        shown = [
            (item.dispatch[1], item)
            for item in self.items.values()
            if item.dispatch is not None and item.dispatch[0] in ("available", "leased")
        ]
        order = sorted(
            (at, -item.request.priority, item.work_id, item.revision)
            for at, item in shown
            if at <= self.now
        )
        return [(work_id, revision) for _, _, work_id, revision in order]

    def claim(
        self, items: list[tuple[int, int]], owner: int, number: int, epoch: int
    ) -> list[Answer]:
        code = self.prologue(epoch)
        if code is not None:
            return [Answer("lost", code)] * len(items)
        return [self._claim(self.items.get(i), revision, owner, number) for i, revision in items]

    def _claim(self, item: Item | None, revision: int, owner: int, number: int) -> Answer:
        if item is None:
            return Answer("lost", "ASDUR104")
        live = item.state in LEASED and self.now < item.lease_expires_at
        asked_again = (item.owner, item.request_number, item.epoch) == (owner, number, self.epoch)
        if live and item.state == "leased" and asked_again:
            return Answer("claimed")
        if live or item.revision != revision or item.state not in LEASED + WAITING:
            return Answer("lost", "ASDUR104")
        if self._recover(item):
            return Answer("moved", item.code)
        if self.now < item.eligible_at:
            return Answer("lost", "ASDUR104")
        self._lease(item, owner, number)
        return Answer("claimed")

    def _recover(self, item: Item) -> bool:
        """Whether the Work was of another epoch, its lease lost or its time over, which is decided now."""
        if item.epoch != self.epoch:
            item.move(item.suspended_by_class, MISMATCH, self.now)
        elif item.state in LEASED:
            if item.permit is not None:
                item.permit.close(self.epoch)
            item.end("lease_expired", self.epoch, self.now)
        elif item.closed(self.now) is not None:
            item.end("cutoff", self.epoch, self.now)
        else:
            return False
        return True

    def _lease(self, item: Item, owner: int, number: int) -> None:
        item.attempt += 1
        item.lease_generation += 1
        item.owner, item.request_number, item.code = owner, number, None
        item.lease_started_at = self.now
        ends = self.now + item.request.retry.lease
        item.lease_expires_at = min(ends, item.request.deadline or ends)
        item.step("leased")

    # --- one attempt

    def renew(self, fence: Fence) -> Answer:
        code = self.prologue(fence.epoch) or self.fenced(fence)[1]
        if code is not None:
            return Answer("stale", code)
        item = self.items[fence.work_id]
        retry = item.request.retry
        limit = item.lease_started_at + retry.max_lease
        limit = min(limit, item.request.deadline or limit)
        # Never shortened: the clock may have stepped back.
        item.lease_expires_at = max(item.lease_expires_at, min(self.now + retry.lease, limit))
        return Answer("renewed")

    def permit(self, fence: Fence) -> Answer:
        item, code = self._enter(fence)
        if code is not None:
            return refused(code)
        if item.state != "leased":
            return Answer("replayed")
        if item.closed(self.now) is not None:
            item.end("cutoff", self.epoch, self.now)
            return refused(item.code)
        item.permits.append(
            Permit(attempt=item.attempt, lease_generation=item.lease_generation, epoch=self.epoch)
        )
        item.step("effect_permitted")
        return Answer("granted")

    def admit(self, fence: Fence) -> Answer:
        item, code = self._enter(fence)
        if code is not None:
            return refused(code)
        if item.state != "effect_permitted" or item.admitted:
            return refused("ASDUR116")
        if item.closed(self.now) is not None:
            item.permit.close(self.epoch)
            item.end("cutoff", self.epoch, self.now)
            return refused(item.code)
        item.permit.admitted_at = self.now
        return Answer("admitted")

    def suspend(self, fence: Fence) -> Answer:
        """The claimer cannot prepare it."""
        item, code = self._enter(fence)
        if code is None and item.state != "leased":
            code = "ASDUR116"
        if code is not None:
            return refused(code)
        item.move(UNAVAILABLE, "ASDUR109", self.now)
        return Answer("suspended", "ASDUR109")

    def _enter(self, fence: Fence) -> tuple[Item | None, str | None]:
        item, code = self.fenced(fence)
        return item, self.prologue(fence.epoch, fence.scope_generation) or code

    def complete(self, fence: Fence, event: str, code: str | None, result: bytes | None) -> Answer:
        scope_code = self.prologue(fence.epoch, fence.scope_generation)
        if scope_code in ("ASDUR108", "ASDUR113"):
            return refused(scope_code)
        item, refusal = self.fenced(fence)
        if item is None:
            return refused("ASDUR111")
        said = (fence, event, code, result)
        refusal = scope_code or refusal
        if refusal is not None:
            if said in item.told:
                return Answer("replayed")
            item.observed.add(said)
            return Answer("quarantined", refusal)
        if event == "succeeded" and not item.admitted:
            return refused("ASDUR116")
        item.told.add(said)
        self._close(item, event)
        item.result = result
        item.end(event, self.epoch, self.now, code=code)
        return Answer("completed", item.code)

    def _close(self, item: Item, event: str) -> None:
        known = {"succeeded": "known_succeeded", "retry_before_effect": "proven_no_effect"}
        if item.permit is not None:
            item.permit.outcome = known.get(event, "ambiguous")

    def handoff(self, fence: Fence) -> Answer:
        """Whether this is an admitted invocation that nobody asked to stop."""
        item, code = self._enter(fence)
        if code is None and (item.state != "effect_permitted" or not item.admitted):
            code = "ASDUR116"
        return Answer("held") if code is None else refused(code)

    def boundaries(self) -> list[datetime]:
        """Every moment at which some answer changes."""
        of_items = {at for i in self.items.values() if not i.terminal for at in i.moments()}
        of_commands = {command.expires_at for command in self.commands.values()}
        return sorted(of_items | of_commands - {None})


def identical(request: WorkRequest) -> WorkRequest:
    """What the fingerprint covers: neither the identities nor the order of service."""
    return replace(request, command_id="-", idempotency_key="-", priority=0)
