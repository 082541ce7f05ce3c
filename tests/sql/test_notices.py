"""Producers notify exactly those who sleep, once a transaction, with nothing but a lane."""

import pytest

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg


class Listener:
    """A connection that hears the store's notices."""

    def __init__(self, engine: Engine, sender: Engine) -> None:
        self._connection = engine.connection
        self._sender = sender
        self._connection.execute("listen onecommit")

    def heard(self) -> list[str]:
        """Everything notified up to now: notices arrive in commit order, so a mark of our own ends the wait."""
        self._sender.sql("select pg_notify('onecommit', 'mark')")
        heard = []
        for notice in self._connection.notifies(timeout=30):
            if notice.payload == "mark":
                return heard
            heard.append(notice.payload)
        raise AssertionError("the mark was never heard")


@pytest.fixture
def listener(store: Store, engine: Engine) -> Listener:
    engine.call("adopt_lanes", p_queue="q")
    return Listener(store.engine(), store.engine())


@pytest.fixture
def wake(engine: Engine, listener: Listener) -> str:
    """The notice that wakes the sleepers of the queue."""
    return f"r{engine.call('queue_lanes', p_queue='q')[0][0][0]}"


def test_nobody_sleeps_so_nobody_is_told(engine: Engine, listener: Listener):
    """A notice serializes commits, so the hot path sends none."""
    engine.claim(sleep=False)
    engine.enqueue(3)
    engine.enqueue(3, options={"priority": 1})
    assert listener.heard() == []


def test_a_sleeper_is_told_once_for_each_transaction(engine: Engine, listener: Listener, wake: str):
    """However many calls it makes, and only when it commits."""
    engine.claim(sleep=True)
    with engine.open():
        engine.enqueue(3)
        engine.enqueue()
        assert listener.heard() == []
    assert listener.heard() == [wake]
    with engine.open():
        engine.enqueue()
        engine.rollback()
    assert listener.heard() == []


def test_a_woken_worker_takes_the_mark_away(engine: Engine, listener: Listener, wake: str):
    """While it works through the queue producers stay silent; null leaves the mark alone."""
    engine.claim(sleep=True)
    engine.claim(sleep=None)
    engine.enqueue()
    assert listener.heard() == [wake]
    engine.claim(sleep=False)
    engine.enqueue()
    assert listener.heard() == []


def test_a_mark_is_forgotten_when_its_worker_died_asleep(engine: Engine, listener: Listener):
    """It is a time, not a flag."""
    engine.claim(sleep=True)
    engine.sql("select setval(sleeper_seq, 1) from onecommit.lane where queue = 'q'")
    engine.enqueue()
    assert listener.heard() == []


@pytest.mark.parametrize("form", ["one", "many"])
def test_the_first_job_of_a_new_priority_wakes_who_sleeps(
    engine: Engine, listener: Listener, form: str
):
    """Its lane came to be after the mark was set."""
    engine.claim(sleep=True)
    if form == "one":
        engine.enqueue_one(priority=1)
    else:
        engine.enqueue(3, options={"priority": 1})
    [lanes] = engine.call("queue_lanes", p_queue="q")
    assert len(lanes[0]) == 2
    [notice] = listener.heard()
    assert notice in {f"r{lane}" for lane in lanes[0]}


def test_sleepers_of_another_queue_are_left_alone(engine: Engine, listener: Listener):
    """The mark belongs to the queue's lanes."""
    engine.claim(sleep=True)
    engine.enqueue(queue="other")
    assert listener.heard() == []


def test_every_way_back_into_the_queue_wakes(engine: Engine, listener: Listener, wake: str):
    """Promotion, operators' retries and resuming, not only new jobs."""
    attempts = engine.take(2)
    engine.finish(attempts[:1], "failed")
    engine.finish(attempts[1:], "snoozed")
    listener.heard()
    engine.claim(sleep=True)
    engine.promote()
    assert listener.heard() == [wake]
    engine.retry_dead(attempts[0].job_id)
    assert listener.heard() == [wake]
    engine.resume()
    assert listener.heard() == [wake]


@pytest.mark.parametrize(("delay_us", "told"), [(1_000_000, ["s"]), (3_600_000_000, [])])
def test_the_promoter_is_told_of_what_is_due_before_it_would_look(
    engine: Engine, listener: Listener, delay_us: int, told: list[str]
):
    """New jobs, retries and snoozes alike."""
    engine.enqueue(2, options={"delay_us": delay_us})
    assert listener.heard() == told
    engine.enqueue(2, options=[{"delay_us": delay_us}, {}])
    assert listener.heard() == told
    for outcome in ("retried", "snoozed"):
        engine.finish(engine.claim(1).attempts or engine.take(), outcome, delay_us=delay_us)
        assert listener.heard() == told


def test_workers_are_told_of_cancellations(engine: Engine, listener: Listener):
    """One notice a call; what was cancelled is asked for."""
    attempts = engine.take(2)
    engine.cancel(*(a.job_id for a in attempts))
    assert listener.heard() == ["c"]
    told = engine.call("cancellations")[0]
    assert told.cancel_job_ids == [a.job_id for a in attempts]
    assert told.cancel_run_leases == [1, 1]
    assert tuple(engine.heartbeat()) == tuple(told)
