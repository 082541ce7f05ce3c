"""Random operations on a real store, and on a model written from the text that says what each must answer."""

from dataclasses import replace
from itertools import count
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from tests.sql.work.machine_draws import ATTEMPT, COMMANDS, DrawnOperations
from tests.sql.work.machine_pair import Pair
from tests.sql.work.machine_requests import some_request
from tests.works import SECOND

STEPS = (
    *["go_on"] * 4,
    "claim",
    "ask",
    "accept_again",
    "let_time_pass",
    "do_a_step_of_an_attempt",
    "command",
    "give_a_command_again",
    "do_what_is_rare",
    *["go_on"] * 4,
)
# Small enough to be drawn evenly, and where no module has a literal: hypothesis would also draw those of all modules that
# happen to be loaded, and a derandomized run would not be the same alone and in the whole suite. The small decisions come from dice that go on from step to step: drawn one by one they
# would be favoured and repeated from history to history, and few would get to where the rare guards are.
SEEDS = st.integers(2**80, 2**80 + 2**24 - 1)
MOST_ITEMS = 6
SCOPES = count(1)


class WorkStore(DrawnOperations):
    """What acceptors, workers, operators and the clock do in any order, in a scope of its own for each history.

    One rule that draws what it does: of several rules each history would leave some out, and few would get far.
    """

    @initialize(seed=SEEDS)
    def start(self, seed: int) -> None:
        self.dice = Random(seed)
        self.pair = Pair(self.calls, f"m{next(SCOPES)}")
        self.model = self.pair.model
        self.asked = self.claims = self.rotations = 0
        for _ in range(self.dice.randint(1, 3)):
            self.accept()

    @rule(what=st.sampled_from(STEPS), seed=SEEDS)
    def step(self, what: str, seed: int) -> None:
        """One of what the machine can do, if there is something to do it to."""
        self.dice.seed(f"{self.dice.random()} {seed}")
        getattr(self, what)()

    # --- the clock

    def let_time_pass(self) -> None:
        """Mostly to a moment at which an answer changes, or beside it."""
        now = self.model.now
        moments = self.model.boundaries()
        later = [moment for moment in moments if moment > now]
        chosen = {"next": later[:1], "later": later[:4], "any": moments, "back": [now - SECOND]}
        how = self.dice.choice(("next", "any", "next", "back", "later"))
        self.take_time(chosen[how] or [now + SECOND])

    # --- acceptance

    def ask(self) -> None:
        if len(self.model.items) < MOST_ITEMS and len(self.unfinished()) < 3:
            self.accept()

    def accept(self) -> None:
        self.asked += 1
        calls = self.calls
        terms = {"scope": calls.scope, "contract": calls.contract, "number": self.asked}
        self.pair.accept(some_request(self.dice, **terms, now=self.model.now))

    def accept_again(self) -> None:
        """Under the identities of this, that or no request, with the same terms or others."""
        if not self.model.items:
            return
        first, second = self.item().request, self.item().request
        self.asked += 1
        fresh = [f"f{self.asked}"] if len(self.model.items) < MOST_ITEMS else []
        commands = [first.command_id, first.command_id, second.command_id, *fresh]
        keys = [first.idempotency_key, first.idempotency_key, second.idempotency_key, *fresh]
        changes = ({}, {}, {"priority": 9}, {"payload": b"{}"}, {"codec": "msgpack"})
        identities = {
            "command_id": self.dice.choice(commands),
            "idempotency_key": self.dice.choice(keys),
        }
        self.pair.accept(replace(first, **identities | self.dice.choice(changes)))

    # --- workers

    def claim(self) -> None:
        """What discovery shows, which the model must see too; or whatever else."""
        items = self.model.due()
        assert self.calls.discover() == items
        if not items or self.rarely():
            known = self.model.items.values()
            items = [(0, 1), *((item.work_id, self.revision(item)) for item in known)]
        self.claims += self.dice.choice((1, 1, 0))
        self.pair.claim(items, self.dice.randint(1, 2), self.claims)

    def do_a_step_of_an_attempt(self) -> None:
        if self.pair.fences:
            operation = self.dice.choice(ATTEMPT)
            self.attempt(operation, self.fence())

    # --- operators

    def command(self) -> None:
        if self.model.items:
            item = self.item()
            self.give(self.dice.choice(COMMANDS), item)

    def give_a_command_again(self) -> None:
        """The exact one, mostly of late."""
        if self.pair.given:
            given = self.pair.given if self.rarely() else self.pair.given[-3:]
            function, command_id, arguments = self.dice.choice(given)
            self.pair.command(function, command_id, **arguments)

    def do_what_is_rare(self) -> None:
        what = self.dice.choice(("purge", "disable", "rotate", "disable", "purge"))
        if what == "rotate":
            self.rotate()
        elif what == "purge":
            self.pair.purge()
        elif len(self.model.items) > 1:
            generation = self.dice.choice((1, 2, 1))
            identity = self.identity()
            self.pair.command("disable_scope", identity, generation=generation, reason="closed")

    # --- the way that Work goes

    def go_on(self) -> None:
        """Again and again with the same Work."""
        if self.unfinished():
            item = self.dice.choice(self.unfinished())
            for _ in range(self.dice.randint(1, 8)):
                self.take_further(item)
                self.pair.check()

    # --- what holds after every step

    @invariant()
    def the_store_holds_what_the_model_says(self) -> None:
        self.pair.check()
