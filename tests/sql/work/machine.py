"""Random operations on a real store, and on a model written from the text that says what each must answer."""

from dataclasses import replace
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.sql.work.machine_draws import MOST_ROTATIONS, DrawnOperations
from tests.sql.work.machine_pair import Pair
from tests.sql.work.machine_requests import requests
from tests.sql.work.model_item import LEASED
from tests.works import MICROSECOND, SECOND

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
MOST_ITEMS = 6
SCOPES = count(1)


class WorkStore(DrawnOperations):
    """What acceptors, workers, operators and the clock do in any order, in a scope of its own for each history.

    Few rules, which draw the operation themselves: histories leave out some of the rules altogether. `go_on` takes
    Work along its way; the others get in between.
    """

    @initialize(data=st.data(), items=st.integers(1, 3))
    def start(self, data, items: int) -> None:
        self.pair = Pair(self.calls, f"m{next(SCOPES)}")
        self.model = self.pair.model
        self.asked = self.claims = self.rotations = 0
        for _ in range(items):
            self.accept(data)

    # --- the clock

    @rule(
        data=st.data(),
        how=st.sampled_from(("next", "next", "later", "any", "back")),
        beside=st.sampled_from((0, 0, 1, -1)),
    )
    def let_time_pass(self, data, how: str, beside: int) -> None:
        """Mostly to a moment at which an answer changes, or a microsecond beside it."""
        moments = self.model.boundaries()
        later = [moment for moment in moments if moment > self.model.now]
        chosen = {"next": later[:1], "later": later[:4], "any": moments, "back": []}[how]
        aim = self.model.now + (-SECOND if how == "back" else SECOND)
        if chosen:
            aim = data.draw(st.sampled_from(chosen)) + beside * MICROSECOND
        self.pair.set_clock(aim)

    # --- acceptance

    @rule(data=st.data(), again=st.booleans())
    def ask(self, data, again: bool) -> None:
        """For new Work, or under identities that were used before."""
        if again and self.model.items:
            self.accept_again(data)
        elif len(self.model.items) < MOST_ITEMS and len(self.unfinished()) < 3:
            self.accept(data)

    def accept(self, data: st.DataObject) -> None:
        self.asked += 1
        calls = self.calls
        terms = {"scope": calls.scope, "contract": calls.contract, "number": self.asked}
        self.pair.accept(data.draw(requests(**terms, now=self.model.now)))

    def accept_again(self, data: st.DataObject) -> None:
        """Under the identities of this, that or no request, with the same terms or others."""
        first, second = self.item(data).request, self.item(data).request
        self.asked += 1
        fresh = [f"f{self.asked}"] if len(self.model.items) < MOST_ITEMS else []
        commands = [first.command_id, first.command_id, second.command_id, *fresh]
        keys = [first.idempotency_key, first.idempotency_key, second.idempotency_key, *fresh]
        changes = ({}, {}, {"priority": 9}, {"payload": b"{}"}, {"codec": "msgpack"})
        identities = {
            "command_id": data.draw(st.sampled_from(commands)),
            "idempotency_key": data.draw(st.sampled_from(keys)),
        }
        self.pair.accept(replace(first, **identities | data.draw(st.sampled_from(changes))))

    # --- workers

    @precondition(lambda self: self.model.due())
    @rule(data=st.data(), owner=st.integers(1, 2), again=st.sampled_from((False, True, False)))
    def claim(self, data, owner: int, again: bool) -> None:
        """What discovery shows, which the model must see too; or whatever else."""
        items = self.model.due()
        assert self.calls.discover() == items
        if self.rarely(data, "anything"):
            known = self.model.items.values()
            items = [(0, 1), *((item.work_id, self.revision(data, item)) for item in known)]
        self.claims += not again
        self.pair.claim(items, owner, self.claims)

    @precondition(lambda self: any(item.state in LEASED for item in self.model.items.values()))
    @rule(data=st.data(), operation=st.sampled_from(ATTEMPT))
    def do_a_step_of_an_attempt(self, data, operation: str) -> None:
        self.attempt(data, operation, self.fence(data))

    # --- operators

    @precondition(lambda self: self.model.items)
    @rule(data=st.data(), function=st.sampled_from(COMMANDS), fits=st.booleans())
    def command(self, data, function: str, fits: bool) -> None:
        item = self.item(data)
        fits = fits and item.state.startswith("suspended")
        self.give(data, self.remedy(item) if fits else function, item)

    @precondition(lambda self: self.pair.given)
    @rule(data=st.data())
    def give_a_command_again(self, data) -> None:
        """The exact one."""
        function, command_id, arguments = data.draw(st.sampled_from(self.pair.given))
        self.pair.command(function, command_id, **arguments)

    @precondition(lambda self: self.model.items)
    @rule(
        data=st.data(),
        what=st.sampled_from(
            ("nothing", "rotate", "nothing", "purge", "nothing", "disable", "nothing")
        ),
    )
    def do_what_is_rare(self, data, what: str) -> None:
        if what == "rotate" and self.rotations < MOST_ROTATIONS:
            self.rotate()
        if what == "purge":
            self.pair.purge()
        if what == "disable" and len(self.model.items) > 2:
            generation = data.draw(st.integers(1, 2), label="generation")
            identity = self.identity(data)
            self.pair.command("disable_scope", identity, generation=generation, reason="closed")

    # --- the way that Work goes

    @precondition(lambda self: self.unfinished())
    @rule(data=st.data())
    def go_a_step_on(self, data) -> None:
        self.take_further(data, self.item(data))

    @precondition(lambda self: self.unfinished())
    @rule(data=st.data(), steps=st.integers(2, 6))
    def go_on(self, data, steps: int) -> None:
        """The same again and again with the same Work."""
        item = self.item(data)
        for _ in range(steps):
            self.take_further(data, item)
            self.pair.check()

    @precondition(lambda self: any(not item.attempt for item in self.unfinished()))
    @rule(data=st.data())
    def invoke(self, data) -> None:
        """As far as the provider, in one go."""
        fresh = [item for item in self.unfinished() if not item.attempt]
        item = data.draw(st.sampled_from(fresh))
        for _ in range(3):
            self.take_further(data, item)
            self.pair.check()

    # --- what holds after every step

    @invariant()
    def the_store_holds_what_the_model_says(self) -> None:
        self.pair.check()
