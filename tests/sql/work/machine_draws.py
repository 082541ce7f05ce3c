"""What is drawn for the operations of Work, and which of them takes a given item of Work further."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from tests.sql.work.machine_calls import Calls
from tests.sql.work.machine_pair import Pair
from tests.sql.work.model_item import LEASED, WAITING, Fence, Item
from tests.sql.work.model_operators import OperatedModel
from tests.works import SECOND

EVENTS = (
    "succeeded",
    "exception",
    "ambiguous",
    "failed_terminal",
    "retry_before_effect",
    "compatibility",
)
MISFORTUNES = (*["nothing"] * 6, "lost", "canceled", "rotated", *["nothing"] * 6)
MOST_ROTATIONS = 2


class DrawnOperations(RuleBasedStateMachine):
    """Operations on a pair of store and model; the rules that call them stand in the machine."""

    calls: Calls
    pair: Pair
    model: OperatedModel
    claims: int
    rotations: int

    def rarely(self, data: st.DataObject, label: str) -> bool:
        """In one of ten; not at an end of the range, where more is drawn."""
        return data.draw(st.integers(0, 9), label=label) == 5

    def item(self, data: st.DataObject) -> Item:
        """Rarely one that has ended."""
        items = list(self.model.items.values())
        return data.draw(
            st.sampled_from(items if self.rarely(data, "any") else self.unfinished() or items)
        )

    def unfinished(self) -> list[Item]:
        return [item for item in self.model.items.values() if not item.terminal]

    def fence(self, data: st.DataObject) -> Fence:
        """Mostly of a live attempt; also of one that was, or with a field that is not its own."""
        live = [item.fence() for item in self.model.items.values() if item.state in LEASED]
        kind = data.draw(st.sampled_from(["live"] * 6 + ["old", "bent"]), label="fence")
        fence = data.draw(st.sampled_from(self.pair.fences if kind == "old" else live))
        if kind == "bent":
            name = data.draw(st.sampled_from(Fence.__slots__), label="field")
            by = data.draw(st.sampled_from((-1, 1)), label="by")
            fence = replace(fence, **{name: getattr(fence, name) + by})
        return fence

    def revision(self, data: st.DataObject, item: Item) -> int:
        return item.revision - self.rarely(data, "stale revision")

    def identity(self, data: st.DataObject) -> str:
        """Of a command: mostly a new one."""
        used = [command_id for _, command_id, _ in self.pair.given]
        if used and self.rarely(data, "used identity"):
            return data.draw(st.sampled_from(used))
        return f"op{len(used)}"

    # --- operations with what is drawn for them

    def attempt(self, data: st.DataObject, operation: str, fence: Fence) -> None:
        """A step of the attempt; sometimes twice, as after a lost reply."""
        details: dict[str, Any] = {}
        if operation == "complete":
            details["event"] = data.draw(st.sampled_from(EVENTS), label="event")
            succeeded = details["event"] == "succeeded"
            details["code"] = None if succeeded else data.draw(st.sampled_from((None, "app.busy")))
            details["result"] = data.draw(st.sampled_from((b"1", b"2"))) if succeeded else None
        if operation == "hand_off":
            details = {"late": data.draw(st.booleans()), "commits": data.draw(st.booleans())}
        for _ in range(data.draw(st.sampled_from((1, 1, 2, 1)), label="times")):
            getattr(self.pair, operation)(fence, **details)

    def give(self, data: st.DataObject, function: str, item: Item) -> None:
        """A command about this Work, of which the details are drawn."""
        command_id = self.identity(data)
        arguments: dict[str, Any] = {"work_id": item.work_id}
        if function in ("retry_safe", "release_recovery", "resolve_work", "reconcile_finish"):
            arguments["revision"] = self.revision(data, item)
        if function in ("resolve_work", "reconcile_finish"):
            evidence = data.draw(st.sampled_from(("not_applied", "applied", "unknown")))
            results = (b"1", b"1", None) if evidence == "applied" else (None,)
            arguments |= {"evidence": evidence, "result": data.draw(st.sampled_from(results))}
        if function == "reconcile_finish":
            begun = [i for f, i, a in self.pair.given if f == "reconcile_begin"]
            command_id = data.draw(st.sampled_from(begun[-2:] or [command_id]))
        else:
            arguments["reason"] = "asked"
        if function == "reconcile_begin":
            arguments["lease"] = data.draw(st.sampled_from((2, 10))) * SECOND
        if function == "release_recoveries":
            del arguments["work_id"]
            arguments |= {"contract_name": None, "contract_version": None}
            arguments |= {
                "limit": data.draw(st.integers(1, 2)),
                "preview": data.draw(st.booleans()),
            }
        self.pair.command(function, command_id, **arguments)

    # --- the way that Work goes

    def take_further(self, data: st.DataObject, item: Item) -> None:
        """What comes next for Work that stands so, of what workers and operators would do."""
        if item.terminal:
            return
        if item.state in WAITING:
            if item.dispatch[1] > self.model.now:
                self.pair.set_clock(item.dispatch[1])
            self.claims += 1
            self.pair.claim([(item.work_id, item.revision)], 1, self.claims)
        elif item.state in LEASED:
            self.take_attempt_further(data, item)
        else:
            assert self.calls.action(item.work_id) == self.model.action(item)
            self.give(data, self.remedy(item), item)

    def take_attempt_further(self, data: st.DataObject, item: Item) -> None:
        """Unless something gets in between."""
        happens = data.draw(st.sampled_from(MISFORTUNES), label="happens")
        if happens == "rotated" and self.rotations < MOST_ROTATIONS:
            self.rotate()
        elif happens == "canceled":
            self.give(data, "cancel_work", item)
        elif happens == "lost" or not item.holds(item.fence(), self.model.now):
            self.lose(item)
        elif item.state == "leased":
            self.attempt(data, "permit", item.fence())
        elif not item.admitted:
            self.attempt(data, "admit", item.fence())
        else:
            self.attempt(data, "complete", item.fence())

    def lose(self, item: Item) -> None:
        """The lease ends, and a claim finds that out."""
        self.pair.set_clock(max(self.model.now, item.lease_expires_at))
        self.claims += 1
        self.pair.claim([(item.work_id, item.revision)], 2, self.claims)

    def rotate(self) -> None:
        self.rotations += 1
        self.pair.rotate()

    def remedy(self, item: Item) -> str:
        """The command that fits."""
        begun = any(
            c.work_id == item.work_id and c.revision == item.revision and c.answer is None
            for c in self.model.commands.values()
        )
        return {
            "release": "release_recovery",
            "reconcile": "reconcile_finish" if begun else "reconcile_begin",
            "resolve": "resolve_work",
            "retry_safe": "retry_safe",
            "cancel": "cancel_work",
        }[self.model.action(item)]
