"""What an enqueue writes: job ids in order, the right place for each job, options as far as they travel."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg


def test_a_bulk_keeps_the_callers_order(engine: Engine):
    """Ids, arguments, kinds and the order of claims follow the arrays."""
    answer = engine.enqueue(kinds=["a", "b", "c"], args=['{"n":1}', '{"n":2}', '{"n":3}'])
    assert answer.job_ids == sorted(answer.job_ids)
    assert answer.created is None
    attempts = engine.claim().attempts
    assert [(a.job_id, a.kind, a.args) for a in attempts] == list(
        zip(answer.job_ids, "abc", ['{"n":1}', '{"n":2}', '{"n":3}'], strict=True)
    )


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_one_kind_stands_for_all(engine: Engine, count: int):
    """Whether there is one job or many."""
    engine.enqueue(count, kinds=["same"])
    assert [a.kind for a in engine.claim(1000).attempts] == ["same"] * count


def test_a_job_exists_only_if_its_transaction_commits(store: Store):
    """Neither its row nor its place in the queue is seen before, or after a rollback."""
    producer, worker = store.engine(), store.engine()
    for ending in ("rollback", "commit"):
        producer.begin()
        job = producer.enqueue_one()
        later = producer.enqueue_one(delay_us=10**9)
        assert (worker.job(job), worker.job(later), worker.claim().job_ids) == (None, None, [])
        getattr(producer, ending)()
    assert worker.claim().job_ids == [job]
    assert worker.state(later) == "scheduled"


OPTIONS = {
    "priority": 3,
    "max_attempts": 7,
    "timeout_us": 5_000_000,
    "tags": ["a", "b"],
    "trace": {"traceparent": "x"},
    "meta": {"deep": [1, {"a": None}]},
    "unique": {"key": "ab"},
}


@pytest.mark.parametrize("form", ["one for all", "one for each"])
@pytest.mark.parametrize("when", [{}, {"delay_us": 10**9}], ids=["now", "later"])
def test_options_travel_with_the_job(engine: Engine, form: str, when: dict):
    """What the store decides by is a column; the rest is handed to the worker."""
    option = OPTIONS | when
    [job] = engine.enqueue(options=option if form == "one for all" else [option]).job_ids
    engine.sql("update onecommit.scheduled set run_at = now()")
    engine.promote()
    [attempt] = engine.claim().attempts
    assert attempt.max_attempts == 7
    assert json.loads(attempt.options) == {
        "timeout_us": 5_000_000, "tags": ["a", "b"], "trace": {"traceparent": "x"}, "meta": {"deep": [1, {"a": None}]}, "unique": "ab",
    }  # fmt: skip
    assert engine.job(job).priority == 3


@pytest.mark.parametrize(
    "options",
    [
        None,
        {},
        {
            "priority": None,
            "max_attempts": None,
            "run_at": None,
            "delay_us": None,
            "timeout_us": None,
            "unique": None,
        },
    ],
    ids=["none", "empty", "nulls"],
)
def test_absent_options_have_defaults(engine: Engine, options: dict | None):
    """Priority 2, twenty attempts, now."""
    [job] = engine.enqueue(options=options).job_ids
    seen = engine.job(job)
    assert (seen.priority, seen.max_attempts, seen.state) == (2, 20, "ready")


def test_options_of_each_job_are_its_own(engine: Engine):
    """A bulk may mix priorities, schedules and keys; ids keep the caller's order."""
    options = [
        {"priority": 4},
        {},
        {"delay_us": 10**9},
        {"priority": 1},
        {"priority": 4, "delay_us": 10**9},
    ]
    jobs = engine.enqueue(5, options=options).job_ids
    assert [engine.job(job).priority for job in jobs] == [4, 2, 2, 1, 4]
    assert [engine.state(job) for job in jobs] == [
        "ready",
        "ready",
        "scheduled",
        "ready",
        "scheduled",
    ]
    assert engine.claim().job_ids == [jobs[3], jobs[1], jobs[0]]
    assert [json.loads(engine.job(job).args)["n"] for job in jobs] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "text",
    [
        "2999-01-02T03:04:05Z",
        "2999-01-02 03:04:05.678901+00",
        "2999-01-02T05:04+02:00",
        "2999-01-02T05:04:05+0200",
    ],
)
def test_a_run_time_is_kept_exactly(engine: Engine, text: str):
    """In any ISO 8601 form that has an offset, whatever the session's time zone or date style."""
    engine.sql("set timezone = 'Asia/Tokyo'")
    engine.sql("set datestyle = 'SQL, DMY'")
    job = engine.value(
        "select (onecommit.enqueue_jobs('q', '{k}', '{1}', %s, %s)).job_ids[1]",
        f'{{"run_at": "{text}"}}',
        engine.epoch,
    )
    engine.sql("reset datestyle")
    micros = 678901 if "." in text else 0
    seconds = 5 if text.count(":") > 2 or text.endswith(("Z", "+00", "+0200")) else 0
    assert engine.job(job).run_at == datetime(2999, 1, 2, 3, 4, seconds, micros, tzinfo=UTC)


def test_a_time_that_has_passed_is_now(engine: Engine):
    """Such a job never waits for the promoter."""
    past = engine.enqueue_one(run_at="2001-01-01T00:00:00Z")
    none = engine.enqueue_one(delay_us=0)
    assert engine.claim().job_ids == [past, none]


def test_a_delay_counts_on_the_database_clock(engine: Engine):
    """From the moment of the call."""
    job = engine.enqueue_one(delay_us=3_600_000_000)
    due = engine.job(job).run_at - engine.value("select clock_timestamp()")
    assert timedelta(minutes=59) < due <= timedelta(hours=1)


def test_queues_are_apart(engine: Engine):
    """Each has its own lanes; a claim of one never sees another's jobs."""
    jobs = {queue: engine.enqueue(2, queue=queue).job_ids for queue in ("a", "b", "A ")}
    for queue, expected in jobs.items():
        assert engine.claim(queue=queue).job_ids == expected


def test_the_name_of_a_queue_is_data(engine: Engine):
    """Quotes, placeholders and SQL in it mean nothing."""
    for queue in ("'; drop table onecommit.ready; --", '"', "%s", "ünïcode 🐘", "x" * 200):
        job = engine.enqueue_one(queue=queue)
        assert engine.claim(queue=queue).job_ids == [job]
