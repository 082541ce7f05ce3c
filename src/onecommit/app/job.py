"""A registered job: the handler, and every way to enqueue it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from onecommit.app.async_producer import AsyncProducer
from onecommit.app.enqueue_plan import EnqueueOptions, EnqueuePlan
from onecommit.app.job_definition import JobDefinition
from onecommit.app.registration import Registry
from onecommit.app.stores import Stores
from onecommit.app.sync_producer import SyncProducer
from onecommit.domain.follow_up import FollowUp, FollowUpFunction, Transition
from onecommit.domain.job import OnParentFailure
from onecommit.domain.unique import Unique
from onecommit.drivers.driver import (
    AsyncCallerConnection,
    SyncCallerConnection,
    async_driver_for,
    is_async_connection,
    sync_driver_for,
)

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=FollowUpFunction)


class Producer(AsyncProducer[P]):
    """Enqueues one kind of job with one set of options: async, sync, or in a caller's transaction."""

    @property
    def sync(self) -> SyncProducer[P]:
        """The same for callers that do not await."""
        return SyncProducer(self._plan, self._stores)

    def follow_up(self, *args: P.args, **kwargs: P.kwargs) -> FollowUp:
        """A job to enqueue in the transaction that ends another one: see `Job.on_completed`.

        Raises:
            InvalidArgument: An argument does not fit the handler or cannot be stored.
        """
        return self._plan.follow_up(args, kwargs)

    @overload
    def in_tx(self, connection: AsyncCallerConnection) -> AsyncProducer[P]: ...
    @overload
    def in_tx(self, connection: SyncCallerConnection) -> SyncProducer[P]: ...
    def in_tx(
        self, connection: AsyncCallerConnection | SyncCallerConnection
    ) -> AsyncProducer[P] | SyncProducer[P]:
        """Enqueue in the transaction that is open on the connection: the job exists if it commits.

        Takes a connection or session of psycopg, psycopg2, asyncpg, SQLAlchemy or Django. Awaited for an
        async one.
        """
        schema = self._stores.schema
        if is_async_connection(connection):
            driver = async_driver_for(connection, schema=schema)  # type: ignore[arg-type]
            return AsyncProducer(self._plan, self._stores, driver=driver)
        sync_driver = sync_driver_for(connection, schema=schema)  # type: ignore[arg-type]
        return SyncProducer(self._plan, self._stores, driver=sync_driver)


class Job(Producer[P], Generic[P, R]):
    """A handler registered with `@app.job` or `@app.caller_owned_job`; calling it calls the handler."""

    def __init__(self, definition: JobDefinition, stores: Stores, registry: Registry) -> None:
        super().__init__(EnqueuePlan(definition), stores)
        self._registry = registry
        self.definition = definition
        self.schema = stores.schema
        self.__name__ = definition.kind
        self.__doc__ = definition.handler.__doc__
        self.__wrapped__ = definition.handler

    def __call__(self, ctx: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the handler directly, as a unit test does."""
        result: R = self.definition.handler(ctx, *args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"<Job {self.definition.kind!r} of queue {self.definition.queue!r}>"

    def on_completed(self, function: F) -> F:
        """Ask the function what to enqueue when such a job completes; both commit together.

        It gets a JobTransition and returns `other_job.follow_up(...)`, several, or None. What it raises
        counts as a failure of the attempt. Refused for a caller-owned job.
        """
        return self._follow(Transition.COMPLETED, function)

    def on_retried(self, function: F) -> F:
        """The same for an attempt that failed, when the job is tried again.

        What the function raises is reported, here and at the transitions below; the transition stands.
        """
        return self._follow(Transition.RETRIED, function)

    def on_exhausted(self, function: F) -> F:
        """The same for a job that goes to the dead letters."""
        return self._follow(Transition.EXHAUSTED, function)

    def on_cancelled(self, function: F) -> F:
        """The same for a job that is cancelled: by its handler, or by a process that knows the job."""
        return self._follow(Transition.CANCELLED, function)

    def on_waiting(self, function: F) -> F:
        """The same for a job whose handler begins to wait for a callback, each time."""
        return self._follow(Transition.WAITING, function)

    def on_rescued(self, function: F) -> F:
        """The same for a job that lost its worker or its deadline and is tried again."""
        return self._follow(Transition.RESCUED, function)

    def _follow(self, transition: Transition, function: F) -> F:
        self._registry.follow_up(self.definition.kind, transition, function)
        return function

    def options(
        self,
        *,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        priority: int | None = None,
        max_attempts: int | None = None,
        queue: str | None = None,
        unique: Unique | None = None,
        timeout: timedelta | None = None,
        tags: Sequence[str] | None = None,
        after: int | None = None,
        on_parent_failure: OnParentFailure | Literal["cancel", "enqueue", "discard"] | None = None,
    ) -> Producer[P]:
        """The same job with other options; None leaves what its definition says.

        Args:
            run_at: Not before this time, which must have a time zone.
            delay: Not before this much later, by the clock of the database.
            priority: 1 is first, 4 last.
            max_attempts: Failed attempts before the job goes to the dead letters.
            queue: Another queue.
            unique: Refuse a second job that is the same.
            timeout: How long one attempt may run.
            tags: Labels that operators see.
            after: The id of the job, its parent, that must end first.
            on_parent_failure: What becomes of it if the parent does not complete: cancelled unless said.
        """
        options = EnqueueOptions(
            run_at=run_at,
            delay=delay,
            priority=priority,
            max_attempts=max_attempts,
            queue=queue,
            unique=unique,
            timeout=timeout,
            tags=tags,
            after=after,
            on_parent_failure=on_parent_failure,
        )
        return Producer(EnqueuePlan(self.definition, options), self._stores)
