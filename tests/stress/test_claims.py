"""Fifty thousand jobs under everything at once: what was committed is what was finished, and each attempt ran once.

Producers commit and roll back transactions of all lengths, several claimers race with different limits, complete,
retry, snooze, fail, hand over to callers or die; a leader promotes, rescues, cancels, pauses nothing and turns the
ring all the time. The ledger in Python knows what the store said; the store must say the same in the end.
"""

import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from tests.engine import Attempt, Engine
from tests.stores import Store

pytestmark = [pytest.mark.pg, pytest.mark.timeout(600)]

RING = """
update onecommit.ring set chapter_lifetime = '100ms', chapter_rows = 2000, retention = '0', retention_floor = '0',
    evacuate_after = '300ms'
"""
LIMITS = (3, 25, 100, 500)
PRODUCERS = 6


@dataclass(kw_only=True)
class Ledger:
    """What everybody was told, and so must be true."""

    committed: Counter = field(default_factory=Counter)
    claimed: Counter = field(default_factory=Counter)
    ended: Counter = field(default_factory=Counter)
    invoiced: set[int] = field(default_factory=set)
    claims: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, book: Counter, entries: list) -> None:
        with self.changed:
            book.update(entries)
            self.claims += len(entries) * (book is self.claimed)
            self.changed.notify_all()

    def wait_for_change(self, seconds: float) -> None:
        """Return when somebody was told something, or after the time at which a worker would poll again."""
        with self.changed:
            self.changed.wait(seconds)

    @property
    def is_settled(self) -> bool:
        return len(self.ended) >= len(self.committed)


@dataclass(kw_only=True)
class Stress:
    """One run: the store, the seed, the ledger, and whether the producers are still at work."""

    store: Store
    jobs: int
    seed: int
    ledger: Ledger = field(default_factory=Ledger)
    produced: threading.Event = field(default_factory=threading.Event)
    failed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        print(f"seed {self.seed}: set ONECOMMIT_SEED to run it again")
        self.store.truncate_ring()
        for name in ("q", "r"):
            for priority in (1, 2):
                self.store.observer.execute("select onecommit.adopt_lane(%s, %s)", (name, priority))
        self.store.observer.execute(RING)

    def dice_for(self, role: str) -> random.Random:
        return random.Random(f"{self.seed} {role}")

    @property
    def is_over(self) -> bool:
        return self.failed.is_set() or (self.produced.is_set() and self.ledger.is_settled)

    # --- producers ---

    def produce(self, number: int) -> None:
        """Commit a share of the jobs; a quarter of the transactions roll back, some stay open for long."""
        dice = self.dice_for(f"producer {number}")
        engine = self.store.engine()
        wanted, made = self.jobs // PRODUCERS, 0
        while made < wanted and not self.failed.is_set():
            engine.begin()
            job_ids = self.enqueue_some(engine, dice)
            if dice.random() < 0.05:
                self.linger(dice)
            if dice.random() < 0.25:
                engine.rollback()
            else:
                engine.commit()
                made += len(job_ids)
                self.ledger.add(self.ledger.committed, job_ids)

    def enqueue_some(self, engine: Engine, dice: random.Random) -> list[int]:
        """One to four calls, one of them perhaps in a savepoint that is rolled back."""
        job_ids = []
        for _ in range(dice.randint(1, 4)):
            option = {"priority": dice.choice([1, 2, 2, 2])}
            if dice.random() < 0.1:
                option["delay_us"] = dice.randint(1, 200_000)
            count = dice.choice([1, 1, 2, 20, 100])
            if dice.random() < 0.1:
                engine.sql("savepoint a")
                engine.enqueue(count, queue="q")
                engine.sql("rollback to a")
            job_ids += engine.enqueue(count, queue=dice.choice("qqqr"), options=option).job_ids
        return job_ids

    def linger(self, dice: random.Random) -> None:
        """Keep the transaction open while others get on."""
        target = self.ledger.claims + dice.randint(200, 2000)
        with self.ledger.changed:
            self.ledger.changed.wait_for(
                lambda: self.ledger.claims >= target or self.failed.is_set(), timeout=1
            )

    # --- workers ---

    def work(self, number: int) -> None:
        """Claim and close until everything is settled; now and then die and come back."""
        dice = self.dice_for(f"worker {number}")
        engine = self.store.engine()
        engine.register(queues=["q", "r"])
        while not self.is_over:
            claimed = engine.claim(LIMITS[number % len(LIMITS)], queue=dice.choice("qqqr"))
            self.ledger.add(
                self.ledger.claimed, [(a.job_id, a.run_lease) for a in claimed.attempts]
            )
            if claimed.attempts and dice.random() < 0.02:
                engine.retire()
                engine.register(queues=["q", "r"])
            elif claimed.attempts:
                self.close(engine, list(claimed.attempts), dice)
            else:
                self.ledger.wait_for_change(0.01)

    def close(self, engine: Engine, attempts: list[Attempt], dice: random.Random) -> None:
        """Most complete in a batch; some in a caller's transaction, some otherwise."""
        dice.shuffle(attempts)
        callers = [attempts.pop() for _ in range(min(len(attempts), dice.choice([0, 0, 0, 2])))]
        others = [attempts.pop() for _ in range(min(len(attempts), dice.choice([0, 0, 2])))]
        for attempt in callers:
            self.complete_job(engine, attempt, commits=dice.random() < 0.75)
        if others:
            outcome = dice.choice(["retried", "snoozed", "discarded"])
            verdicts = self.insist(engine.finish, others, outcome, lock=dice.random() < 0.5)
            if outcome == "discarded":
                self.end(others, verdicts)
        if attempts:
            self.end(attempts, self.insist(engine.complete, attempts))

    def insist(
        self, call: Callable, attempts: list[Attempt], *args: Any, **options: Any
    ) -> list[str]:
        """What became of each; one that is busy, because it is just being evacuated, is asked about again."""
        verdicts = again(call, attempts, *args, **options)
        while busy := [place for place, verdict in enumerate(verdicts) if verdict == "busy"]:
            self.ledger.wait_for_change(0.01)
            repeated = again(call, [attempts[place] for place in busy], *args, **options)
            for place, verdict in zip(busy, repeated, strict=True):
                verdicts[place] = verdict
        return verdicts

    def complete_job(self, engine: Engine, attempt: Attempt, *, commits: bool) -> None:
        """A caller's row and its job's completion; a rolled back one is tried again."""
        try:
            engine.begin()
            engine.sql("insert into app.invoice values (%s)", attempt.job_id)
            engine.complete_job(attempt)
            if not commits:
                engine.rollback()
                return self.complete_job(engine, attempt, commits=True)
            engine.commit()
        except psycopg.Error as error:
            if error.sqlstate != "OC001":
                raise
            engine.rollback()
        else:
            self.ledger.add(self.ledger.ended, [attempt.job_id])
            self.ledger.invoiced.add(attempt.job_id)

    def end(self, attempts: list[Attempt], verdicts: list[str]) -> None:
        self.ledger.add(
            self.ledger.ended,
            [
                a.job_id
                for a, verdict in zip(attempts, verdicts, strict=True)
                if verdict == "closed"
            ],
        )

    # --- the leader ---

    def lead(self) -> None:
        """Promote, rescue, cancel at random and turn the ring."""
        dice = self.dice_for("leader")
        engine = self.store.engine()
        while not self.is_over:
            again(engine.promote)
            again(engine.rescue)
            engine.tend()
            if dice.random() < 0.2 and self.ledger.committed:
                self.cancel(engine, dice)
            self.ledger.wait_for_change(0.02)

    def cancel(self, engine: Engine, dice: random.Random) -> None:
        with self.ledger.changed:
            recent = list(self.ledger.committed)[-200:]
        results = again(engine.cancel, *dice.sample(recent, min(3, len(recent))))
        self.ledger.add(
            self.ledger.ended,
            [job_id for job_id, result in results.items() if result == "cancelled"],
        )

    # --- the run ---

    def run(self) -> None:
        """All of them at once, until every committed job has ended."""
        with ThreadPoolExecutor(16) as threads:
            producers = [threads.submit(self.guard, self.produce, n) for n in range(PRODUCERS)]
            rest = [threads.submit(self.guard, self.work, n) for n in range(len(LIMITS))]
            rest.append(threads.submit(self.guard, self.lead))
            wait(producers)
            self.produced.set()
            wait(rest)
        for future in (*producers, *rest):
            future.result()

    def guard(self, role: Callable, *args: int) -> None:
        """Let everybody stop when one has failed."""
        try:
            role(*args)
        except BaseException:
            self.failed.set()
            raise


def again(call: Callable, *args, **kwargs):
    """Repeat a call whose chapter was reclaimed or which lost a deadlock, as its contract says."""
    while True:
        try:
            return call(*args, **kwargs)
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            pass


def assert_settled(stress: Stress) -> None:
    """The ledger closes, and the store agrees."""
    ledger, engine = stress.ledger, stress.store.engine()
    assert set(ledger.committed.values()) == {1}
    assert ledger.ended == ledger.committed, "each committed job ended once, and no other did"
    assert set(ledger.claimed.values()) == {1}, "no attempt was handed out twice"
    invoices = Counter(row.job_id for row in engine.sql("select job_id from app.invoice"))
    assert invoices == Counter(ledger.invoiced)
    engine.register(queues=["q", "r"])
    assert engine.drain(queue="q") == engine.drain(queue="r") == []
    for queue in engine.call("list_queues"):
        assert (queue.ready, queue.scheduled, queue.running) == (0, 0, 0)
    chapters = engine.value("select reclaimed from onecommit.ring")
    assert chapters >= 3, f"only {chapters} chapters were reclaimed"


@pytest.mark.parametrize(
    "jobs", [50_000, pytest.param(1_000_000, marks=[pytest.mark.soak, pytest.mark.timeout(7200)])]
)
def test_nothing_is_lost_and_nothing_runs_twice(store: Store, jobs: int):
    """Whatever happens between a commit and the end of its job."""
    stress = Stress(store=store, jobs=jobs, seed=int(os.environ.get("ONECOMMIT_SEED", "1")))
    stress.run()
    assert_settled(stress)
