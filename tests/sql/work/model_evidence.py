"""What operators find out about effects, as the text describes it: commands that are kept, and evidence."""

from datetime import datetime, timedelta
from typing import Any

from tests.sql.work.model import Answer, Command, Model, refused
from tests.sql.work.model_item import AMBIGUOUS, MANUAL, MISMATCH, RECONCILIATION, Item, Permit


class EvidenceModel(Model):
    """The model with its commands. A command's arguments are those that tell it from another under its id."""

    __slots__ = ()

    def known(
        self, operation: str, command_id: str, arguments: dict[str, Any], *, disabled: bool = False
    ) -> Answer | None:
        """Why the command is not looked at any further. `disabled`: it may be given in a disabled scope."""
        code = self.prologue(self.epoch)
        if code is not None and not (disabled and code == "ASDUR107"):
            return refused(code)
        command = self.commands.get(command_id)
        if command is None:
            return None
        if (command.operation, command.arguments) != (operation, arguments):
            return refused("ASDUR102")
        return command.answer and command.answer._replace(outcome="duplicate")

    def record(
        self, operation: str, command_id: str, arguments: dict[str, Any], outcome: str, item: Item
    ) -> Answer:
        answer = Answer(outcome, item.code, item.state, item.revision)
        self.commands[command_id] = Command(
            operation=operation, arguments=arguments, answer=answer, work_id=item.work_id
        )
        return answer

    def blocked(self, work_id: int, revision: int | None = None) -> str | None:
        """Why nothing can be done about this Work: not found, terminal, moved on."""
        item = self.items.get(work_id)
        if item is None:
            return "ASDUR111"
        if item.terminal:
            return "ASDUR110"
        return "ASDUR112" if revision not in (None, item.revision) else None

    # --- evidence

    def reconcile_begin(self, command_id: str, *, lease: timedelta, **arguments: Any) -> Answer:
        answer = self.known("reconcile", command_id, arguments, disabled=True)
        if answer is not None:
            return answer
        item = self.items.get(arguments["work_id"])
        command = self.commands.get(command_id)
        if command is not None and command.expires_at > self.now:
            code = "ASDUR118"
        else:
            code = self._reconcilable(arguments["work_id"], command_id)
        if code is not None:
            return refused(code, item)
        self.commands[command_id] = Command(
            operation="reconcile",
            arguments=arguments,
            work_id=item.work_id,
            revision=item.revision,
            expires_at=self.now + lease,
            permit=item.unresolved(self.epoch)[-1],
        )
        outcome = "resumed" if command else "started"
        return Answer(outcome, None, item.state, item.revision)

    def _reconcilable(self, work_id: int, command_id: str) -> str | None:
        item = self.items.get(work_id)
        code = self.blocked(work_id)
        if code is not None:
            return code
        if item.state != RECONCILIATION or item.code == MISMATCH:
            return "ASDUR116"
        if not item.unresolved(self.epoch):
            return "ASDUR116"
        return "ASDUR118" if self.held_until(item, but=command_id) else None

    def held_until(self, item: Item, *, but: str | None = None) -> datetime | None:
        """When the last lease ends under which somebody reconciles it. `but`: under another command."""
        commands = (c for command_id, c in self.commands.items() if command_id != but)
        ends = [c.expires_at for c in commands if c.work_id == item.work_id and c.expires_at]
        return max((at for at in ends if at > self.now), default=None)

    def reconcile_finish(
        self, command_id: str, *, work_id: int, revision: int, evidence: str, result: bytes | None
    ) -> Answer:
        code = self.prologue(self.epoch)
        if code not in (None, "ASDUR107"):
            return refused(code)
        command = self.commands.get(command_id)
        item = self.items.get(work_id)
        if command is None or command.operation != "reconcile":
            return refused("ASDUR116", item)
        if command.answer is not None:
            same = command.work_id == work_id and command.evidence == (evidence, result)
            known = command.answer._replace(outcome="duplicate")
            return known if same else refused("ASDUR102", item)
        if command.work_id != work_id:
            return refused("ASDUR102", item)
        code = "ASDUR112" if command.revision != revision else self.blocked(work_id, revision)
        code = code or self._reconcilable(work_id, command_id)
        if code is None and evidence == "applied" and result is None:
            code = "ASDUR117"
        if code is not None:
            return refused(code, item)
        if evidence != "unknown":
            self._apply(item, command.permit, evidence, result)
        command.answer = Answer("recorded", item.code, item.state, item.revision)
        command.evidence = (evidence, result)
        command.expires_at = None
        return command.answer

    def resolve_work(self, command_id: str, **arguments: Any) -> Answer:
        answer = self.known("resolve", command_id, arguments, disabled=True)
        if answer is not None:
            return answer
        item = self.items.get(arguments["work_id"])
        code = self.blocked(arguments["work_id"], arguments["revision"])
        code = code or self._resolvable(item, arguments["evidence"], arguments["result"])
        if code is not None:
            return refused(code, item)
        newest = item.unresolved(self.epoch)[-1]
        self._apply(item, newest, arguments["evidence"], arguments["result"])
        return self.record("resolve", command_id, arguments, "recorded", item)

    def _resolvable(self, item: Item, evidence: str, result: bytes | None) -> str | None:
        canceled = item.state == AMBIGUOUS and item.cancel_requested_at is not None
        waits = item.state == MANUAL or canceled
        if not waits or item.code == MISMATCH or not item.unresolved(self.epoch):
            return "ASDUR116"
        proven = evidence == "not_applied" or (evidence == "applied" and result is not None)
        return None if proven else "ASDUR117"

    def _apply(self, item: Item, permit: Permit, evidence: str, result: bytes | None) -> None:
        """Of one permit, under the epoch in which it is known; Work with another unknown one goes on waiting."""
        item.epoch = self.epoch
        if evidence == "applied":
            permit.outcome = "known_succeeded"
            item.result = result
            item.end("succeeded", self.epoch, self.now)
        else:
            permit.outcome = "proven_no_effect"
            item.end("retry_before_effect", self.epoch, self.now)
