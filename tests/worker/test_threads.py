"""Plain functions run beside the loop; a stuck one keeps neither the loop nor the process."""

import asyncio
import contextvars
import threading

import pytest

from onecommit.worker.threads import HandlerThreads

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_results_errors_and_the_context_cross_over():
    threads = HandlerThreads(limit=2)
    variable.set("outside")

    def read() -> str:
        value = variable.get()
        variable.set("inside")
        return value

    assert await threads.run(read) == "outside"
    assert variable.get() == "outside"
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    with pytest.raises(RuntimeError):
        await threads.run(lambda: next(iter(())))
    threads.abandon()


async def test_no_more_threads_run_than_allowed():
    threads = HandlerThreads(limit=2)
    begun, release = threading.Semaphore(0), threading.Event()
    names = set()

    def work() -> None:
        names.add(threading.current_thread().name)
        begun.release()
        assert release.wait(10)

    tasks = [asyncio.create_task(threads.run(work)) for _ in range(5)]
    await asyncio.to_thread(begun.acquire)
    await asyncio.to_thread(begun.acquire)
    assert not begun.acquire(blocking=False)
    release.set()
    await asyncio.gather(*tasks)
    assert len(names) == 2
    threads.abandon()


async def test_a_cancelled_wait_lasts_until_the_function_returns():
    threads = HandlerThreads(limit=1)
    begun, release = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert release.wait(10)
        return "done"

    task = asyncio.create_task(threads.run(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    release.set()
    assert await task == "done"
    threads.abandon()


async def test_an_abandoned_wait_ends_at_once():
    threads = HandlerThreads(limit=1)
    begun, release = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        release.wait(10)

    task = asyncio.create_task(threads.run(work))
    await asyncio.to_thread(begun.wait)
    threads.abandon()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
