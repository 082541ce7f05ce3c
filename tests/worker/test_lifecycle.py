"""Every loop starts once, survives its rounds' failures and stops as often as it is asked."""

import asyncio

import pytest

from onecommit.telemetry.events import Event, LoopFailed
from onecommit.worker.lifecycle import Lifecycle

from tests.worker.harness import eventually


class Rounds:
    """A loop that plays what each round of a script says: a pause, or an exception to raise."""

    name = "rounds"

    def __init__(self, *script: float | BaseException | None) -> None:
        self.script = list(script)
        self.begun = asyncio.Semaphore(0)

    async def run_once(self) -> float | None:
        self.begun.release()
        step = self.script.pop(0) if self.script else None
        if isinstance(step, BaseException):
            raise step
        return step


def lifecycle_of(loop, *, fatal=(), ended=None, events=None):
    return Lifecycle(
        loop,
        emit=[].append if events is None else events.append,
        is_fatal=lambda error: isinstance(error, fatal),
        on_fatal=[].append if ended is None else ended.append,
    )


async def test_a_loop_starts_only_once():
    lifecycle = lifecycle_of(Rounds())
    lifecycle.start()
    with pytest.raises(RuntimeError, match="started before"):
        lifecycle.start()
    await lifecycle.stop(timeout=1)


async def test_stopping_twice_and_before_the_start_is_harmless():
    lifecycle = lifecycle_of(Rounds())
    await lifecycle.stop(timeout=1)
    lifecycle.start()
    await asyncio.gather(lifecycle.stop(timeout=1), lifecycle.stop(timeout=1))
    assert not lifecycle.running


async def test_a_wake_during_a_round_is_not_lost():
    rounds = Rounds(None)
    lifecycle = lifecycle_of(rounds)
    lifecycle.start()
    await rounds.begun.acquire()
    lifecycle.wake()
    async with asyncio.timeout(5):
        await rounds.begun.acquire()
    await lifecycle.stop(timeout=1)


async def test_a_failed_round_is_reported_by_class_only_and_the_loop_goes_on():
    events: list[Event] = []
    rounds = Rounds(ValueError("secret"), None)
    lifecycle = lifecycle_of(rounds, events=events)
    lifecycle.start()
    async with asyncio.timeout(5):
        await rounds.begun.acquire()
        await rounds.begun.acquire()
    await lifecycle.stop(timeout=1)
    [failed] = events
    assert isinstance(failed, LoopFailed)
    assert failed.failure == "ValueError"
    assert "secret" not in repr(failed)
    assert "run_once" in failed.frames


async def test_a_fatal_failure_ends_the_loop_and_is_handed_over():
    ended: list[BaseException] = []
    fault = LookupError()
    lifecycle = lifecycle_of(Rounds(fault), fatal=LookupError, ended=ended)
    lifecycle.start()
    await eventually(lambda: not lifecycle.running, what="the loop has ended")
    assert ended == [fault]


async def test_a_round_that_does_not_end_is_cancelled_when_the_stop_runs_out_of_time():
    class Stuck:
        name = "stuck"
        cancelled = False

        async def run_once(self) -> float | None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise

    stuck = Stuck()
    lifecycle = lifecycle_of(stuck)
    lifecycle.start()
    await asyncio.sleep(0)
    await lifecycle.stop(timeout=0.01)
    assert stuck.cancelled
    assert not lifecycle.running
