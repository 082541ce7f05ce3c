"""Random operations on a real store, and on a small model that says where each job must be."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.engine import HOUR_US, Attempt
from tests.stores import Store

pytestmark = pytest.mark.pg

SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
    "derandomize": True,
    # Not explain: it traces every line.
    "phases": (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
}
RING = "update onecommit.ring set chapter_lifetime = '1us', retention = '0', retention_floor = '0', evacuate_after = '0'"
EVERYTHING = """
select (select coalesce(json_agg(json_build_object('asked', asked, 'state', j.state, 'max_attempts', j.max_attempts, 'run_lease', j.run_lease)), '[]')
        from unnest(%s::bigint[]) asked left join lateral onecommit.get_job(asked) j on true) as jobs,
       (select json_build_object('ready', q.ready, 'scheduled', q.scheduled, 'dead', q.dead, 'running', q.running, 'blocked', q.blocked)
        from onecommit.list_queues() q) as queue,
       (select coalesce(json_object_agg(encode(k.key, 'hex'), k.job_id), '{}') from onecommit.unique_key k) as keys,
       (select coalesce(json_agg(i.job_id), '[]') from app.invoice i) as invoices
"""
GONE = {"completed", "cancelled"}
LEGAL = {"ready", "scheduled", "running", "dead", "blocked"} | GONE


@dataclass(kw_only=True)
class Job:
    """What the model knows of a job."""

    max_attempts: int
    state: str
    due: bool = True
    used: int = 0
    lease: int = 0
    key: str | None = None
    attempt: Attempt | None = None
    parent: int | None = None
    rule: str = "cancel"


@dataclass(kw_only=True)
class Model:
    """Where each job must be, and which key belongs to whom."""

    jobs: dict[int, Job] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    leases_seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, job_id: int, *, max_attempts: int, due: bool, key: str | None = None) -> None:
        state = "ready" if due else "scheduled"
        self.jobs[job_id] = Job(max_attempts=max_attempts, state=state, due=due, key=key)
        if key is not None:
            self.keys[key] = job_id

    def add_dependant(
        self, job_id: int, *, parent: int, rule: str, due: bool, key: str | None = None
    ) -> None:
        self.add(job_id, max_attempts=20, due=due, key=key)
        job = self.jobs[job_id]
        # Found by the index of later attempts, so that its first lease is the second.
        job.state, job.parent, job.rule, job.lease = "blocked", parent, rule, 1
        if self.jobs[parent].state in GONE | {"dead"}:
            self.release(parent)

    def release(self, parent: int) -> None:
        """What the parent's end makes of its dependants, and so on."""
        completed = self.jobs[parent].state == "completed"
        for job_id in self.of("blocked"):
            job = self.jobs[job_id]
            if job.parent != parent:
                continue
            if completed or job.rule == "enqueue":
                job.state = "ready" if job.due else "scheduled"
            else:
                self.end(job_id, "cancelled" if job.rule == "cancel" else "dead")

    def of(self, *states: str) -> list[int]:
        return [job_id for job_id, job in self.jobs.items() if job.state in states]

    def end(self, job_id: int, state: str) -> None:
        job = self.jobs[job_id]
        job.state, job.attempt = state, None
        if job.key is not None and self.keys.get(job.key) == job_id:
            del self.keys[job.key]
        self.release(job_id)

    def claimed(self, attempt: Attempt) -> None:
        job = self.jobs[attempt.job_id]
        assert job.state == "ready", "claimed though it did not wait"
        assert (attempt.job_id, attempt.run_lease) not in self.leases_seen, "claimed twice"
        self.leases_seen.add((attempt.job_id, attempt.run_lease))
        assert (attempt.run_lease, attempt.number) == (job.lease + 1, job.used + 1)
        job.state, job.attempt, job.lease = "running", attempt, attempt.run_lease

    def finished(self, job_id: int, outcome: str, *, due: bool) -> None:
        job = self.jobs[job_id]
        job.used += outcome != "snoozed"
        if outcome in {"retried", "rescued"} and job.used >= job.max_attempts:
            outcome = "failed"
        match outcome:
            case "retried" | "snoozed" | "rescued":
                job.state, job.due, job.attempt = "scheduled", due, None
            case "failed" | "discarded":
                self.end(job_id, "dead")
            case "cancelled":
                self.end(job_id, "cancelled")


class JobStore(RuleBasedStateMachine):
    """The operations that producers, workers, callers, leaders and operators mix in any order."""

    store: Store

    @initialize()
    def start(self) -> None:
        self.store.empty()
        self.store.truncate_ring()
        self.model = Model()
        self.engine = self.store.engine()
        self.caller = self.store.engine()
        self.engine.register()
        self.engine.sql(RING)
        for priority in (1, 2):
            self.engine.call("adopt_lane", p_queue="q", p_priority=priority)
        self.paused = False

    def teardown(self) -> None:
        self.store.release()

    @contextmanager
    def transaction(self, data: st.DataObject) -> Iterator[bool]:
        """A transaction that commits or rolls back; the model follows only a commit."""
        commits = data.draw(st.booleans(), label="commits")
        self.caller.begin()
        yield commits
        if commits:
            self.caller.commit()
        else:
            self.caller.rollback()

    def pick(self, data: st.DataObject, *states: str) -> list[int]:
        return data.draw(
            st.lists(st.sampled_from(self.model.of(*states)), min_size=1, max_size=4, unique=True)
        )

    def attempts(self, job_ids: list[int]) -> list[Attempt]:
        return [self.model.jobs[job_id].attempt for job_id in job_ids]

    # --- producers ---

    @rule(
        data=st.data(),
        count=st.integers(1, 4),
        due=st.booleans(),
        option=st.fixed_dictionaries(
            {"priority": st.sampled_from([1, 2]), "max_attempts": st.integers(1, 3)}
        ),
        each=st.booleans(),
    )
    def enqueue(self, *, data, count: int, due: bool, option: dict[str, int], each: bool) -> None:
        max_attempts = option["max_attempts"]
        option |= {} if due else {"delay_us": HOUR_US}
        with self.transaction(data) as commits:
            job_ids = self.caller.enqueue(
                count, options=[option] * count if each else option
            ).job_ids
        if commits:
            for job_id in job_ids:
                self.model.add(job_id, max_attempts=max_attempts, due=due)

    @rule(
        data=st.data(),
        keys=st.lists(st.sampled_from(["aa", "bb", "cc"]), min_size=1, max_size=3),
        due=st.booleans(),
    )
    def enqueue_unique(self, data, keys: list[str], due: bool) -> None:
        delay = {} if due else {"delay_us": HOUR_US}
        with self.transaction(data) as commits:
            answer = self.caller.enqueue(
                len(keys), options=[{"unique": {"key": key}} | delay for key in keys]
            )
        taken = dict(self.model.keys)
        for key, job_id, created in zip(keys, answer.job_ids, answer.created, strict=True):
            assert created == (key not in taken)
            assert job_id == taken.setdefault(key, job_id)
            if commits and created:
                self.model.add(job_id, max_attempts=20, due=due, key=key)

    @precondition(lambda self: self.model.jobs)
    @rule(
        data=st.data(),
        rule=st.sampled_from(["cancel", "enqueue", "discard"]),
        due=st.booleans(),
        key=st.sampled_from([None, "aa", "bb"]),
    )
    def enqueue_dependant(self, data, rule: str, due: bool, key: str | None) -> None:
        """Of a job of whatever state whose history the ring still has."""
        parent = data.draw(st.sampled_from(sorted(self.model.jobs)), label="parent")
        taken = key in self.model.keys
        if self.engine.state(parent) is None and not taken:
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                self.engine.enqueue_one(after=parent)
            return
        option = {"after": parent, "on_parent_failure": rule} | (
            {} if due else {"delay_us": HOUR_US}
        )
        with self.transaction(data) as commits:
            answer = self.caller.enqueue(options=option | ({"unique": {"key": key}} if key else {}))
        [job_id] = answer.job_ids
        assert answer.created == ([not taken] if key else None)
        if commits and not taken:
            self.model.add_dependant(job_id, parent=parent, rule=rule, due=due, key=key)

    # --- workers ---

    @rule(limit=st.integers(1, 5))
    def claim(self, limit: int) -> None:
        claimed = self.engine.claim(limit)
        assert (claimed.status == "paused") == self.paused
        for attempt in claimed.attempts:
            self.model.claimed(attempt)

    @rule(limit=st.integers(1, 5))
    def claim_and_roll_back(self, limit: int) -> None:
        with self.engine.open():
            self.engine.claim(limit)
            self.engine.rollback()

    @precondition(lambda self: self.model.of("running"))
    @rule(data=st.data())
    def complete(self, data) -> None:
        job_ids = self.pick(data, "running")
        attempts = self.attempts(job_ids)
        for _ in range(2):
            assert set(self.engine.complete(attempts, side=job_ids)) == {"closed"}
        for job_id in job_ids:
            self.model.end(job_id, "completed")

    @precondition(lambda self: self.model.of("running"))
    @rule(
        data=st.data(),
        outcome=st.sampled_from(["retried", "snoozed", "failed", "discarded", "cancelled"]),
        due=st.booleans(),
        lock=st.booleans(),
    )
    def finish(self, data, outcome: str, due: bool, lock: bool) -> None:
        job_ids = self.pick(data, "running")
        attempts = self.attempts(job_ids)
        verdicts = self.engine.finish(attempts, outcome, delay_us=0 if due else HOUR_US, lock=lock)
        assert set(verdicts) == {"closed"}
        for job_id in job_ids:
            self.model.finished(job_id, outcome, due=due)
        assert set(self.engine.complete(attempts)) <= {"stale", "recycled"}

    @precondition(lambda self: self.model.of("running"))
    @rule(data=st.data())
    def complete_job(self, data) -> None:
        [job_id, *_] = self.pick(data, "running")
        [attempt] = self.attempts([job_id])
        with self.transaction(data) as commits:
            self.caller.sql("insert into app.invoice values (%s)", job_id)
            self.caller.complete_job(attempt)
        if commits:
            self.model.end(job_id, "completed")
            self.caller.begin()
            with pytest.raises(psycopg.Error, match="does not name an open attempt"):
                self.caller.complete_job(attempt)
            self.caller.rollback()

    @precondition(lambda self: self.model.of("running"))
    @rule()
    def lose_the_worker(self) -> None:
        self.engine.retire()
        self.engine.rescue()
        for job_id in self.model.of("running"):
            # The first loss runs again at once.
            self.model.finished(job_id, "rescued", due=self.model.jobs[job_id].used == 0)
        self.engine.register()

    # --- the leader ---

    @rule()
    def promote(self) -> None:
        self.engine.promote()
        for job_id in self.model.of("scheduled"):
            if self.model.jobs[job_id].due:
                self.model.jobs[job_id].state = "ready"

    @rule()
    def let_an_hour_pass(self) -> None:
        self.engine.sql("update onecommit.scheduled set run_at = run_at - interval '2 hours'")
        for job_id in self.model.of("scheduled"):
            self.model.jobs[job_id].due = True

    @rule(steps=st.integers(1, 4))
    def tend(self, steps: int) -> None:
        for _ in range(steps):
            assert self.engine.tend()[0] in {"rotate", "reclaim", "evacuate", "none"}

    @rule()
    def pause_or_resume(self) -> None:
        (self.engine.resume if self.paused else self.engine.pause)()
        self.paused = not self.paused

    # --- operators ---

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data) -> None:
        job_ids = self.pick(data, *LEGAL)
        # A job that ends by the end of another one of these is cancelled by itself, not by its rule.
        ended = {job_id for job_id in job_ids if self.model.jobs[job_id].state in GONE | {"dead"}}
        results = self.engine.cancel(*job_ids)
        for job_id in (i for i in job_ids if i not in ended):
            self.model.jobs[job_id].state = "cancelled"
        for job_id, result in results.items():
            if job_id in ended:
                # A chapter that was reclaimed takes its history with it.
                assert result in {"already_finished", "not_found"}
            else:
                assert result == "cancelled"
                self.model.end(job_id, "cancelled")

    @precondition(lambda self: self.model.of("dead"))
    @rule(data=st.data())
    def retry_dead(self, data) -> None:
        job_ids = self.pick(data, "dead")
        results = self.engine.retry_dead(*job_ids)
        for job_id in sorted(job_ids):
            job = self.model.jobs[job_id]
            if job.key is not None and job.key in self.model.keys:
                assert results[job_id] == "key_held"
                continue
            assert results[job_id] == "retried"
            job.state, job.used = "ready", 0
            if job.key is not None:
                self.model.keys[job.key] = job_id

    @precondition(lambda self: self.model.of("dead"))
    @rule(data=st.data())
    def purge_dead(self, data) -> None:
        for job_id in self.pick(data, "dead"):
            assert self.engine.purge_dead(job_id) == {job_id: "purged"}
            del self.model.jobs[job_id]

    # --- what holds after every step ---

    @invariant()
    def the_store_holds_what_the_model_says(self) -> None:
        seen = self.engine.sql(EVERYTHING, list(self.model.jobs))[0]
        for job in seen.jobs:
            self.is_where_the_model_says(self.model.jobs[job["asked"]], job)
        assert seen.queue == {state: len(self.model.of(state)) for state in seen.queue}
        assert seen.keys == self.model.keys
        assert len(set(seen.invoices)) == len(seen.invoices)
        assert set(seen.invoices) <= set(self.model.of("completed"))

    def is_where_the_model_says(self, expected: Job, job: dict) -> None:
        if job["state"] is None:
            assert expected.state in GONE, f"job {job['asked']} is lost"
            return
        found = (job["state"], job["max_attempts"], job["run_lease"])
        assert found == (expected.state, expected.max_attempts, expected.lease)


def run(store: Store, **options) -> None:
    machine = type("JobStoreUnderTest", (JobStore,), {"store": store})
    machine.TestCase.settings = settings(**SETTINGS, **options)
    machine.TestCase().runTest()


def test_the_store_follows_the_model(store: Store):
    """Nothing is lost, nothing runs twice, and every job is where its history puts it."""
    run(store, max_examples=20, stateful_step_count=30)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_store_follows_the_model_for_long(store: Store):
    """The same with many more and longer histories."""
    run(store, max_examples=1000, stateful_step_count=100)
