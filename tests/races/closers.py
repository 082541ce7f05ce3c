"""Everything that can close an attempt, each told in one word, and what each leaves behind."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from tests.engine import Attempt, Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Closer:
    """One way to close an attempt; `state` is where the job is when this one decided."""

    run: Callable[[Engine, Attempt], str]
    state: str
    holds_attempt: bool


def complete_jobs(engine: Engine, attempt: Attempt) -> str:
    return engine.complete([attempt])[0]


def finish(engine: Engine, attempt: Attempt) -> str:
    return engine.finish([attempt], "retried", delay_us=10**12)[0]


def finish_locked(engine: Engine, attempt: Attempt) -> str:
    return engine.finish([attempt], "retried", delay_us=10**12, lock=True)[0]


def complete_job(engine: Engine, attempt: Attempt) -> str:
    """The caller's row first, then the completion, as an application does."""
    engine.sql("insert into app.invoice values (%s)", attempt.job_id)
    try:
        engine.complete_job(attempt)
    except psycopg.Error as error:
        return error.sqlstate
    return "closed"


def rescue(engine: Engine, attempt: Attempt) -> str:
    return "closed" if engine.rescue().rescued else "skipped"


def cancel(engine: Engine, attempt: Attempt) -> str:
    result = engine.cancel(attempt.job_id)[attempt.job_id]
    return "closed" if result == "cancelled" else result


def materialize(engine: Engine, attempt: Attempt) -> str:
    return "closed" if engine.materialize(attempt) else "skipped"


CLOSERS = {
    "complete_jobs": Closer(run=complete_jobs, state="completed", holds_attempt=False),
    "finish": Closer(run=finish, state="scheduled", holds_attempt=False),
    "finish_locked": Closer(run=finish_locked, state="scheduled", holds_attempt=True),
    "complete_job": Closer(run=complete_job, state="completed", holds_attempt=True),
    "rescue": Closer(run=rescue, state="scheduled", holds_attempt=True),
    "cancel": Closer(run=cancel, state="cancelled", holds_attempt=True),
    "materialize": Closer(run=materialize, state="running", holds_attempt=True),
}
