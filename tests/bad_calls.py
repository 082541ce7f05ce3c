"""Calls of producers, acceptors and callbacks that must be refused, wherever they run."""

import inspect
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from onecommit import App, InvalidArgument, JobContext, Safety
from onecommit.app.job import Job
from onecommit.app.work import Work

from tests.nonsense import (
    NO_DURATION,
    NO_JSON,
    NO_NAME,
    NO_NUMBER,
    NO_TEXT,
    NO_TIME,
    NO_UUID,
    SECRET,
    shown,
)

CALLBACK = "00000000-0000-0000-0000-000000000001"
IDENTITY = {"scope": "tenant", "command_id": "c", "idempotency_key": "i"}
NO_ARGUMENTS = (
    {}, {"n": "x"}, {"n": None}, {"n": 1, "m": 2}, {"n": 1.5}, {"n": True}, {"n": 10**5000}, {"n": object()}, {"\ud800": 1},
)  # fmt: skip
NO_ITEMS = (
    None, 5, "x", b"x", {"n": 1}, [5], [None], ["x"], [[1]],
    *([{"n": 1}, wrong] for wrong in (*NO_ARGUMENTS, {1: 1}, {("n",): 1})),
)  # fmt: skip
NO_WORK = {
    **dict.fromkeys(IDENTITY, (*NO_NAME, "a b")),
    "due_at": NO_TIME[1:],
    "deadline": NO_TIME[1:],
    "plan": (5, "x", [timedelta(1)]),
    "priority": (None, *NO_NUMBER, 101),
}
Calls = Iterator[partial[Any]]


def count_job(app: App) -> Job[Any, Any]:
    """A job that takes a number, and perhaps anything."""

    @app.job(name="count")
    async def count(ctx: JobContext, n: int, words: Any = None) -> None: ...

    return count


def charge_work(app: App) -> Work[Any, Any]:
    """Work that takes numbers by name."""
    return app.work(
        "charge", version="1", payload=dict[str, int], result=str, safety=Safety.IDEMPOTENT
    )


def of_producer(producer: Any) -> Calls:
    """Of `count_job`, in any form."""
    yield partial(producer.enqueue, 1, 2, 3)
    for arguments in NO_ARGUMENTS:
        yield partial(producer.enqueue, **arguments)
    for items in NO_ITEMS:
        yield partial(producer.enqueue_many, items)
    for words in NO_JSON:
        yield partial(producer.enqueue, n=1, words=words)
        yield partial(producer.enqueue_many, [{"n": 1}, {"n": 1, "words": words}])


def of_acceptor(acceptor: Any) -> Calls:
    """Of `charge_work`, in any form."""
    for payload in (None, 5, {"a": "x"}, {"a": 10**5000}, *NO_JSON):
        yield partial(acceptor.accept, payload, **IDENTITY)
    for name, values in NO_WORK.items():
        for value in values:
            yield partial(acceptor.accept, {"a": 1}, **IDENTITY | {name: value})


def of_callbacks(callbacks: Any) -> Calls:
    """Of `app.callbacks`, in any form."""
    for wrong in NO_UUID:
        yield partial(callbacks.resume, wrong)
        yield partial(callbacks.complete, wrong)
        yield partial(callbacks.fail, wrong, reason="r")
        yield partial(callbacks.retry, wrong, reason="r")
    for wrong in NO_JSON:
        yield partial(callbacks.resume, CALLBACK, wrong)
        yield partial(callbacks.complete, CALLBACK, wrong)
    for wrong in (None, *NO_TEXT):
        yield partial(callbacks.fail, CALLBACK, reason=wrong)
        yield partial(callbacks.retry, CALLBACK, reason=wrong)
    for wrong in NO_DURATION:
        yield partial(callbacks.retry, CALLBACK, reason="r", delay=wrong)


async def faults_of(calls: Calls) -> list[str]:
    """What is wrong with how they are refused: each names a field, and repeats nothing."""
    found = []
    for call in calls:
        said = f"{call.func.__qualname__}{shown(call.args)}{shown(call.keywords)}: "
        try:
            await answer(call)
        except InvalidArgument as error:
            if not error.field or SECRET in str(error):
                found.append(f"{said}{error.field} {error}")
        except BaseException as error:  # noqa: BLE001 - whatever else it is, it is wrong
            found.append(f"{said}{type(error).__qualname__}: {error!s:.100}")
        else:
            found.append(f"{said}accepted")
    return found


async def answer(call: Any) -> Any:
    """Of an async method or of a sync one."""
    given = call()
    return await given if inspect.isawaitable(given) else given
