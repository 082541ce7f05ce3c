"""Code of the application, apart from the attempt that waits for it."""

import asyncio

from onecommit.worker.work.apart import Apart, Raised, Returned


async def one() -> int:
    return 1


async def test_code_that_is_cancelled_before_its_first_step_never_began():
    code = Apart(one, name="code")
    code.cancel()
    assert await code.ended() is None


async def test_a_waiter_that_is_cancelled_as_the_code_ends_still_learns_how():
    """What the code did is done."""
    code = Apart(one, name="code")
    waiter = asyncio.create_task(code.ended())
    await asyncio.sleep(0)  # both begin
    waiter.cancel()
    assert await waiter == Returned(1)


async def test_a_waiter_that_is_cancelled_stops_the_code():
    async def endless() -> None:
        await asyncio.Event().wait()

    code = Apart(endless, name="code")
    waiter = asyncio.create_task(code.ended())
    await asyncio.sleep(0)
    waiter.cancel()
    ended = await waiter
    assert isinstance(ended, Raised)
    assert isinstance(ended.error, asyncio.CancelledError)


async def test_code_that_cancels_its_own_task_and_returns_has_returned():
    async def cancel() -> int:
        asyncio.current_task().cancel()
        return 1

    assert await Apart(cancel, name="code").ended() == Returned(1)


def test_code_can_be_thrown_away_unfinished(caplog):
    """As it is with a loop that is closed: it does not wait once more."""

    async def begin() -> None:
        code = Apart(asyncio.Event().wait, name="code")
        await asyncio.sleep(0)
        code._task.get_coro().close()  # raises if it would
        code.cancel()

    asyncio.run(begin())
