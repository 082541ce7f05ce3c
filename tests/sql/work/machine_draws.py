"""What is drawn for the operations of Work, and which of them takes a given item of Work further."""

from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from tests.sql.work.machine_calls import Calls
from tests.sql.work.machine_pair import Pair
from tests.sql.work.model_item import LEASED, WAITING, Fence, Item
from tests.sql.work.model_operators import OperatedModel
from tests.works import MICROSECOND, SECOND

EVENTS = (
    "succeeded",
    "exception",
    "ambiguous",
    "failed_terminal",
    "retry_before_effect",
    "compatibility",
)
COMMANDS = (
    "retry_safe",
    "resolve_work",
    "reconcile_begin",
    "reconcile_finish",
    "release_recovery",
    "release_recoveries",
    "cancel_work",
)
ATTEMPT = ("permit", "admit", "complete", "complete", "renew", "hand_off", "suspend")
# What gets in between, by how the Work stands.
ASIDE_OF_WAITING = ("claim", "time", "claim", "cancel", "claim", "rotate", "command")
ASIDE_OF_LEASED = (
    "attempt",
    "time",
    "late",
    "attempt",
    "cancel",
    "renew",
    "claim",
    "rotate",
    "late",
    "command",
)
ASIDE_OF_SUSPENDED = ("command", "time", "command", "cancel", "command", "rotate", "claim")
MOST_ROTATIONS = 2


class DrawnOperations(RuleBasedStateMachine):
    """Operations on a pair of store and model; the rules that call them stand in the machine."""

    dice: Random
    calls: Calls
    pair: Pair
    model: OperatedModel
    claims: int
    rotations: int

    def rarely(self) -> bool:
        return self.dice.random() < 0.1

    def item(self) -> Item:
        """Rarely one that has ended."""
        items = list(self.model.items.values())
        return self.dice.choice(items if self.rarely() else self.unfinished() or items)

    def unfinished(self) -> list[Item]:
        return [item for item in self.model.items.values() if not item.terminal]

    def fence(self) -> Fence:
        """Mostly of a live attempt; also of one that was, or with a field that is not its own."""
        live = [item.fence() for item in self.model.items.values() if item.state in LEASED]
        kinds = ("live", "old", "live", "bent", "live")
        kind = self.dice.choice(kinds) if live else "old"
        fence = self.dice.choice(self.pair.fences if kind == "old" else live)
        if kind == "bent":
            name = self.dice.choice(Fence.__slots__)
            by = self.dice.choice((-1, 1))
            fence = replace(fence, **{name: getattr(fence, name) + by})
        return fence

    def revision(self, item: Item) -> int:
        return item.revision - self.rarely()

    def identity(self) -> str:
        """Of a command: mostly a new one."""
        used = [command_id for _, command_id, _ in self.pair.given]
        if used and self.rarely():
            return self.dice.choice(used)
        return f"op{len(used)}"

    # --- operations with what is drawn for them

    def attempt(self, operation: str, fence: Fence) -> None:
        """A step of the attempt; sometimes twice, as after a lost reply."""
        details: dict[str, Any] = {}
        if operation == "complete":
            details["event"] = self.dice.choice(EVENTS)
            succeeded = details["event"] == "succeeded"
            details["code"] = None if succeeded else self.dice.choice((None, "app.busy"))
            details["result"] = self.dice.choice((b"1", b"2")) if succeeded else None
        if operation == "hand_off":
            details = {
                "late": self.dice.choice((False, True)),
                "commits": self.dice.choice((False, True)),
            }
        for _ in range(self.dice.choice((1, 1, 2, 1))):
            getattr(self.pair, operation)(fence, **details)

    def give(self, function: str, item: Item) -> None:
        """A command about this Work, of which the details are drawn."""
        command_id = self.identity()
        arguments: dict[str, Any] = {"work_id": item.work_id}
        if function in ("retry_safe", "release_recovery", "resolve_work", "reconcile_finish"):
            arguments["revision"] = self.revision(item)
        if function in ("resolve_work", "reconcile_finish"):
            evidence = self.dice.choice(("not_applied", "applied", "unknown"))
            results = (b"1", b"1", None) if evidence == "applied" else (None,)
            arguments |= {"evidence": evidence, "result": self.dice.choice(results)}
        if function == "reconcile_finish":
            begun = [i for f, i, _ in self.pair.given if f == "reconcile_begin"]
            command_id = self.dice.choice(begun[-2:] or [command_id])
        else:
            arguments["reason"] = "asked"
        if function == "reconcile_begin":
            arguments["lease"] = self.dice.choice((2, 10)) * SECOND
        if function == "release_recoveries":
            del arguments["work_id"]
            arguments |= {"contract_name": None, "contract_version": None}
            arguments |= {
                "limit": self.dice.randint(1, 2),
                "preview": self.dice.choice((False, True)),
            }
        self.pair.command(function, command_id, **arguments)

    # --- the way that Work goes

    def take_further(self, item: Item) -> None:
        """What comes next for Work that stands so, of what workers and operators would do; or something else."""
        if item.terminal:
            return
        often = item.state in ("effect_permitted", "cancel_pending")
        if self.dice.randint(0, 5) in ((2, 3) if often else (3,)):
            self.step_aside(item)
        elif item.state in WAITING:
            if item.dispatch[1] > self.model.now:
                self.pair.set_clock(item.dispatch[1])
            self.claim_again(item, owner=1)
        elif item.state not in LEASED:
            assert self.calls.action(item.work_id) == self.model.action(item)
            held = self.model.held_until(item)
            if held and self.remedy(item) == "reconcile_begin":
                self.take_time([held])
            self.give(self.remedy(item), item)
        elif not item.holds(item.fence(), self.model.now) or item.epoch != self.model.epoch:
            self.pair.set_clock(max(self.model.now, item.lease_expires_at))
            self.claim_again(item, owner=2)
        else:
            permitted = "complete" if item.admitted else "admit"
            operation = "permit" if item.state == "leased" else permitted
            self.attempt(operation, item.fence())

    def step_aside(self, item: Item) -> None:
        """What gets in between, is late, lost, or not for Work that stands so."""
        waiting, leased = item.state in WAITING, item.state in LEASED
        by_state = ASIDE_OF_LEASED if leased else ASIDE_OF_SUSPENDED
        what = self.dice.choice(ASIDE_OF_WAITING if waiting else by_state)
        if what == "time":
            held = (
                [at for at in item.moments() if self.model.now <= at <= item.lease_expires_at]
                if leased
                else []
            )
            self.take_time(held or item.moments())
        elif what == "claim":
            revision = item.revision - self.dice.choice((0, 1, 0))
            self.claims += self.dice.choice((1, 0))
            owner = self.dice.randint(1, 2)
            self.pair.claim([(item.work_id, revision)], owner, self.claims)
        elif what in ("attempt", "late"):
            if what == "late":
                self.take_time([item.lease_expires_at])
            self.attempt(self.dice.choice(ATTEMPT), item.fence())
        elif what == "renew":
            by = self.dice.choice((4, 9)) * SECOND
            self.pair.set_clock(self.model.now + by)
            self.pair.renew(item.fence())
        elif what == "rotate":
            self.rotate()
        elif what == "cancel":
            self.give("cancel_work", item)
        else:
            self.give(self.dice.choice(COMMANDS), item)

    def claim_again(self, item: Item, *, owner: int) -> None:
        """As who discovered it."""
        self.claims += 1
        self.pair.claim([(item.work_id, item.revision)], owner, self.claims)

    def take_time(self, moments: list[datetime]) -> None:
        """To one of these, or a microsecond beside it."""
        beside = self.dice.choice((0, 0, -1, 1))
        self.pair.set_clock(self.dice.choice(moments) + beside * MICROSECOND)

    def rotate(self) -> None:
        if self.rotations < MOST_ROTATIONS:
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
