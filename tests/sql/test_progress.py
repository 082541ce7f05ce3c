"""Progress outlives the attempt that wrote it, becomes part of the completion, and is then gone."""

import json

import pytest

from tests.engine import AUTHORITIES, Engine

pytestmark = pytest.mark.pg

STEP = {"done": 3}


def rows(engine: Engine) -> int:
    return engine.value("select count(*) from onecommit.progress")


def test_it_is_seen_while_the_job_lives(engine: Engine):
    """Running, waiting for a retry, and running again."""
    [attempt] = engine.take()
    engine.set_progress([attempt], STEP)
    assert json.loads(engine.job(attempt.job_id).progress) == STEP
    engine.finish([attempt], "retried")
    assert json.loads(engine.job(attempt.job_id).progress) == STEP
    engine.promote()
    assert json.loads(engine.job(attempt.job_id).progress) == STEP
    engine.claim()
    assert json.loads(engine.job(attempt.job_id).progress) == STEP


def test_the_latest_write_of_an_attempt_stands(engine: Engine):
    """But an earlier attempt cannot overwrite a later one."""
    [old] = engine.take()
    engine.set_progress([old], {"done": 1})
    engine.set_progress([old], {"done": 2})
    engine.finish([old], "retried")
    engine.promote()
    [new] = engine.claim().attempts
    engine.set_progress([new], {"done": 5})
    engine.set_progress([old], {"done": 9})
    assert json.loads(engine.job(new.job_id).progress) == {"done": 5}


def test_a_batch_completion_takes_it_over(engine: Engine):
    """Beside the result, for the jobs named as having any."""
    with_result, without, plain = engine.take(3)
    engine.set_progress([with_result, without], STEP)
    sides = [with_result.job_id, without.job_id]
    engine.complete(
        [with_result, without, plain], details=['{"result": 1}', None, None], side=sides
    )
    details = [engine.job(a.job_id).detail for a in (with_result, without, plain)]
    assert json.loads(details[0]) == {"result": 1, "progress": STEP}
    assert json.loads(details[1]) == {"progress": STEP}
    assert details[2] is None
    assert rows(engine) == 0


@pytest.mark.parametrize("authority", AUTHORITIES)
@pytest.mark.parametrize(
    ("last", "kept"), [(None, STEP), ({"done": 7}, {"done": 7})], ids=["as written", "replaced"]
)
def test_complete_job_takes_it_over(engine: Engine, last, kept, authority: str):
    """The last word is an argument of the call."""
    [attempt] = engine.take()
    engine.set_progress([attempt], STEP)
    engine.under(authority, attempt)
    engine.complete_job(attempt, progress=last)
    assert json.loads(engine.job(attempt.job_id).detail) == {"progress": kept}
    assert rows(engine) == 0


def test_a_loser_of_a_batch_takes_nothing_away(engine: Engine):
    """Its job may go on and needs its progress."""
    [attempt] = engine.take()
    engine.set_progress([attempt], STEP)
    engine.finish([attempt], "retried")
    assert engine.complete([attempt], side=[attempt.job_id]) == ["stale"]
    assert json.loads(engine.job(attempt.job_id).progress) == STEP


@pytest.mark.parametrize(
    "ending", ["failed", "discarded", "cancelled", "cancel_jobs", "last rescue"]
)
def test_every_end_releases_it(engine: Engine, ending: str):
    """No row outlives its job."""
    [attempt] = engine.take(1, max_attempts=1)
    engine.set_progress([attempt], STEP)
    if ending == "cancel_jobs":
        engine.cancel(attempt.job_id)
    elif ending == "last rescue":
        engine.retire()
        engine.rescue()
    else:
        engine.finish([attempt], ending)
    assert rows(engine) == 0


def test_a_job_without_any_completes_without_looking(engine: Engine):
    """Naming a job that has none does no harm."""
    attempts = engine.take(2)
    assert engine.complete(attempts, side=[a.job_id for a in attempts]) == ["closed"] * 2
    assert [engine.job(a.job_id).detail for a in attempts] == [None, None]
