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


def register(engine: Engine, attempt: Attempt) -> str:
    """Materialization as a handler causes it: it waits where the tender only tries."""
    try:
        engine.callback(attempt)
    except psycopg.Error as error:
        return error.sqlstate
    return "closed"


def _resolved_by(how: str) -> Callable[[Engine, Attempt], str]:
    def resolve(engine: Engine, attempt: Attempt) -> str:
        callback = engine.value(
            "select callback_id from onecommit.callback where job_id = %s", attempt.job_id
        )
        answer = getattr(engine, how)(callback)
        return "closed" if answer == "accepted" else answer

    return resolve


CLOSERS = {
    "complete_jobs": Closer(run=complete_jobs, state="completed", holds_attempt=False),
    "finish": Closer(run=finish, state="scheduled", holds_attempt=False),
    "finish_locked": Closer(run=finish_locked, state="scheduled", holds_attempt=True),
    "complete_job": Closer(run=complete_job, state="completed", holds_attempt=True),
    "rescue": Closer(run=rescue, state="scheduled", holds_attempt=True),
    "cancel": Closer(run=cancel, state="cancelled", holds_attempt=True),
    "materialize": Closer(run=materialize, state="running", holds_attempt=True),
    "register": Closer(run=register, state="running", holds_attempt=True),
}

# Of an attempt that is a lease with a pending callback. A resume decides the callback and leaves the attempt open.
LEASE_CLOSERS = {
    **{name: each for name, each in CLOSERS.items() if name not in {"materialize", "register"}},
    "complete_ext": Closer(
        run=_resolved_by("complete_external"), state="completed", holds_attempt=True
    ),
    "fail_ext": Closer(run=_resolved_by("fail_external"), state="dead", holds_attempt=True),
    "retry_ext": Closer(run=_resolved_by("retry_external"), state="scheduled", holds_attempt=True),
    "resume": Closer(run=_resolved_by("resume_external"), state="running", holds_attempt=True),
}
