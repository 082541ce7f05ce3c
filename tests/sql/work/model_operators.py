"""What operators may have done about Work, as the text describes it: stop it, or let it go on."""

from typing import Any

from tests.sql.work.model import Answer, Command, refused
from tests.sql.work.model_evidence import EvidenceModel
from tests.sql.work.model_item import MANUAL, MISMATCH, RECONCILIATION, UNAVAILABLE, Item


class OperatedModel(EvidenceModel):
    """The whole protocol."""

    __slots__ = ()

    def action(self, item: Item) -> str | None:
        """What an operator is told to do about it."""
        if not item.state.startswith("suspended"):
            return None
        if item.code == MISMATCH:
            return "release"
        if item.state == RECONCILIATION:
            return "reconcile"
        if item.state == MANUAL or item.cancel_requested_at is not None:
            return "resolve"
        return "retry_safe" if self._not_retryable(item) is None else "cancel"

    # --- stopping

    def cancel_work(self, command_id: str, **arguments: Any) -> Answer:
        answer = self.known("cancel", command_id, arguments)
        if answer is not None:
            return answer
        item = self.items.get(arguments["work_id"])
        code = self.blocked(arguments["work_id"])
        if code is not None:
            return refused(code, item)
        return self.record("cancel", command_id, arguments, self._cancel(item), item)

    def _cancel(self, item: Item) -> str:
        live = item.admitted and item.epoch == self.epoch and item.lease_expires_at is not None
        if live and self.now < item.lease_expires_at:
            if item.state == "effect_permitted":
                item.cancel_requested_at = self.now
                item.step("cancel_pending")
            return "requested"
        if item.cancel_requested_at is not None and item.state != "cancel_pending":
            return "suspended"
        item.cancel_requested_at = item.cancel_requested_at or self.now
        if item.permit is not None:
            item.permit.close(self.epoch)
        item.end("cancel", self.epoch, self.now)
        return "canceled" if item.terminal else "suspended"

    def disable_scope(self, command_id: str, **arguments: Any) -> Answer:
        """Its revision is the generation."""
        answer = self.known("disable", command_id, arguments, disabled=True)
        if answer is not None:
            return answer
        if self.disabled:
            return refused("ASDUR107")
        if arguments["generation"] != self.generation:
            return refused("ASDUR114")
        self.disabled = True
        self.generation += 1
        for item in self.items.values():
            if not item.terminal:
                item.cancel_requested_at = item.cancel_requested_at or self.now
                item.end("disable", self.epoch, self.now)
                for permit in item.permits:
                    permit.close(self.epoch)
        answer = Answer("disabled", None, "disabled", self.generation)
        self.commands[command_id] = Command(operation="disable", arguments=arguments, answer=answer)
        return answer

    # --- going on

    def retry_safe(self, command_id: str, **arguments: Any) -> Answer:
        answer = self.known("retry_safe", command_id, arguments)
        if answer is not None:
            return answer
        item = self.items.get(arguments["work_id"])
        code = self.blocked(arguments["work_id"], arguments["revision"])
        code = code or self._not_retryable(item)
        if code is not None:
            return refused(code, item)
        item.authorized += 1
        item.epoch = self.epoch
        self._wait(item)
        return self.record("retry_safe", command_id, arguments, "released", item)

    def _not_retryable(self, item: Item) -> str | None:
        if item.code == MISMATCH or not item.state.startswith("suspended"):
            return "ASDUR116"
        unproven = item.state == UNAVAILABLE and item.unresolved(self.epoch)
        if item.state in (RECONCILIATION, MANUAL) or unproven:
            return "ASDUR117"
        if item.cancel_requested_at is not None:
            return "ASDUR116"
        closed = item.closed(self.now)
        if closed is not None:
            return "ASDUR121" if closed == "deadline" else "ASDUR120"
        if item.offsets is None:
            return None
        if item.attempt >= len(item.offsets):
            return "ASDUR120"
        slot = item.accepted_at + item.offsets[item.attempt]
        return "ASDUR120" if slot >= item.cutoff else None

    def _wait(self, item: Item) -> None:
        """For the next slot of a plan, else from now on, not before it is due."""
        if item.offsets:
            item.eligible_at = item.accepted_at + item.offsets[item.attempt]
        else:
            item.eligible_at = max(item.eligible_at, self.now) if not item.attempt else self.now
        item.move("retry_wait" if item.attempt else "pending", None, self.now)

    def release_recovery(self, command_id: str, **arguments: Any) -> Answer:
        answer = self.known("release_recovery", command_id, arguments)
        if answer is not None:
            return answer
        item = self.items.get(arguments["work_id"])
        code = self.blocked(arguments["work_id"], arguments["revision"])
        if code is None and item.code != MISMATCH:
            code = "ASDUR116"
        if code is not None:
            return refused(code, item)
        self._release(item)
        return self.record("release_recovery", command_id, arguments, "released", item)

    def release_recoveries(self, command_id: str, *, preview: bool, **arguments: Any) -> list[Any]:
        """Rows of work id and answer; one answer alone where all is refused."""
        answer = self.known("release_recoveries", command_id, arguments)
        if answer is not None and answer.outcome == "refused":
            return [(None, answer)]
        if answer is not None:
            return sorted(
                (c.work_id, c.answer._replace(outcome="duplicate"))
                for i, c in self.commands.items()
                if i.startswith(f"{command_id}:")
            )
        waiting = [i for i in self.items.values() if i.code == MISMATCH and not i.terminal]
        chosen = sorted(waiting, key=lambda item: item.work_id)[: arguments["limit"]]
        if preview:
            return [(i.work_id, Answer("preview", i.code, i.state, i.revision)) for i in chosen]
        rows = []
        for item in chosen:
            self._release(item)
            each = f"{command_id}:{item.work_id}"
            rows.append((item.work_id, self.record("item", each, arguments, "released", item)))
        self.commands[command_id] = Command(
            operation="release_recoveries", arguments=arguments, answer=Answer("released")
        )
        return rows

    def _release(self, item: Item) -> None:
        item.epoch = self.epoch
        permit = item.permit
        if permit is not None and permit.outcome in ("granted", "ambiguous"):
            permit.outcome = "ambiguous"
            permit.epoch = self.epoch
            item.move(item.suspended_by_class, "ASDUR106", self.now)
            return
        closed = (
            item.next_attempt(self.now, at_once=True)[1] if item.attempt else item.closed(self.now)
        )
        state = item.ended("lease_expired", self.epoch, closed)
        if state == "retry_wait":
            self._wait(item)
        else:
            item.move(state, item.end_code(state, closed, None), self.now, closed=closed)

    def purge(self) -> int:
        """All terminal Work that is no mystery; how many. What is one stays so, and is not looked at again."""
        ended = [item for item in self.items.values() if item.terminal and not item.purged]
        for item in ended:
            item.kept = bool(item.unresolved(self.epoch))
            item.purged = not item.kept
        return sum(item.purged for item in ended)
