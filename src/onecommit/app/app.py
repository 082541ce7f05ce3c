"""The App: what an application registers its jobs with, and reaches the store through."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar
from uuid import UUID

from onecommit.app.async_client import (
    AsyncDeadLetters,
    AsyncJobs,
    AsyncQueues,
    AsyncRing,
    AsyncWorkers,
)
from onecommit.app.async_works import AsyncScopes, AsyncWorks
from onecommit.app.authorization import AsyncAuthorization, Authorization, SyncAuthorization
from onecommit.app.callbacks import Callbacks
from onecommit.app.decorators import CallerOwnedJobDecorator, JobDecorator
from onecommit.app.job_definition import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, JobDefinition
from onecommit.app.observers import Observer, Observers
from onecommit.app.registration import Registry
from onecommit.app.stores import Stores
from onecommit.app.sync_callbacks import SyncCallbacks
from onecommit.app.sync_client import SyncDeadLetters, SyncJobs, SyncQueues, SyncRing, SyncWorkers
from onecommit.app.sync_works import SyncScopes, SyncWorks
from onecommit.app.work import Work
from onecommit.app.work_contract import WorkContract
from onecommit.domain.follow_up import FollowUpFunction, Transition
from onecommit.domain.retry import DEFAULT_RETRY, Retry
from onecommit.domain.settings import StoreSettings
from onecommit.domain.unique import Unique
from onecommit.domain.work import Safety
from onecommit.domain.work_policy import DEFAULT_WORK_RETRY, WorkRetry
from onecommit.errors import UsageError
from onecommit.telemetry.events import Event

if TYPE_CHECKING:
    from onecommit.worker import Worker

E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=FollowUpFunction)
A = TypeVar("A", bound=AsyncAuthorization | SyncAuthorization)
PayloadT = TypeVar("PayloadT")
ResultT = TypeVar("ResultT")

DEFAULT_CONCURRENCY = 20
"""Jobs of one queue that a worker runs at the same time."""
DEFAULT_WORK_CONCURRENCY = 5
"""The same for Work of one name."""


class App:
    """Registers jobs and enqueues them.

    Without arguments the settings come from ONECOMMIT_DSN, ONECOMMIT_STORE_ID and ONECOMMIT_EPOCH. Making
    an App and registering jobs open no connection; the first operation does.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        schema: str = "onecommit",
        store_id: UUID | None = None,
        epoch: int | None = None,
        max_connections: int = 10,
        transaction_pooler: bool = False,
        operation_timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        explicit = StoreSettings(
            dsn=dsn or "",
            schema=schema,
            store_id=store_id,
            epoch=epoch,
            max_connections=max_connections,
            transaction_pooler=transaction_pooler,
            operation_timeout=operation_timeout,
        )
        self._set_up(Stores(explicit.completed, schema=schema))

    @classmethod
    def embedded(
        cls, data_dir: str | os.PathLike[str] | None = None, *, schema: str = "onecommit"
    ) -> Self:
        """An App on a PostgreSQL server of its own, started and migrated by the first operation.

        Without `data_dir` the data is temporary. With one, a server that already runs there is shared.
        The server stops when the App that started it is closed, and with its process.
        """
        # Here, so that an App on a server of the user's own does not load it.
        from onecommit.app.embedding import EmbeddedStore

        app = cls.__new__(cls)
        store = EmbeddedStore(data_dir, schema=schema)
        stores = Stores(store.start, schema=schema, release=store.stop)
        app._set_up(stores)  # noqa: SLF001  an instance of ours
        return app

    def _set_up(self, stores: Stores) -> None:
        self._stores = stores
        self.registry = Registry()
        self.observers = Observers()
        self.jobs = AsyncJobs(stores, self.registry)
        self.queues = AsyncQueues(stores)
        self.dead_letters = AsyncDeadLetters(stores)
        self.workers = AsyncWorkers(stores)
        self.ring = AsyncRing(stores)
        self.callbacks = Callbacks(stores, self.registry)
        self._authorization = Authorization()
        self.works = AsyncWorks(stores, self.registry, self._authorization)
        self.scopes = AsyncScopes(stores, self._authorization)
        self.sync = SyncClient(stores, self.registry, self._authorization)

    @property
    def settings(self) -> StoreSettings:
        """How the store is reached; an embedded server is started for the answer."""
        return self._stores.settings()

    def job(
        self,
        *unnamed: Never,
        queue: str = "default",
        name: str | None = None,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        timeout: timedelta | None = None,
        priority: int = DEFAULT_PRIORITY,
        retry: Retry = DEFAULT_RETRY,
        unique: Unique | None = None,
    ) -> JobDecorator:
        """Register the decorated handler; the job is named as the function unless `name` is given.

        The handler takes a context first: an `async def` one JobContext, a `def` one SyncJobContext. It
        returns None, a JSON value or an outcome; an exception is retried.
        """
        _refuse_unnamed(unnamed, of="job")
        define = partial(
            JobDefinition,
            caller_owned=False,
            queue=queue,
            max_attempts=max_attempts,
            timeout=timeout,
            priority=priority,
            retry=retry,
            unique=unique,
        )
        return JobDecorator(self.registry, self._stores, name=name, define=define)

    def caller_owned_job(
        self,
        *unnamed: Never,
        queue: str = "default",
        name: str | None = None,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        timeout: timedelta | None = None,
        priority: int = DEFAULT_PRIORITY,
        retry: Retry = DEFAULT_RETRY,
        unique: Unique | None = None,
    ) -> CallerOwnedJobDecorator:
        """Register a handler that completes its job inside its own transaction.

        It takes CallerOwnedJobContext (a `def` handler SyncCallerOwnedJobContext), calls
        `ctx.complete_in_tx(connection)` as the last statement of its transaction and returns the receipt.
        To leave the job uncompleted it returns Snooze, RetryAfter, Discard or Cancel, or raises.
        """
        _refuse_unnamed(unnamed, of="caller_owned_job")
        define = partial(
            JobDefinition,
            caller_owned=True,
            queue=queue,
            max_attempts=max_attempts,
            timeout=timeout,
            priority=priority,
            retry=retry,
            unique=unique,
        )
        return CallerOwnedJobDecorator(self.registry, self._stores, name=name, define=define)

    def work(
        self,
        name: str,
        *,
        version: str,
        payload: type[PayloadT],
        result: type[ResultT],
        safety: Safety,
        retry: WorkRetry = DEFAULT_WORK_RETRY,
        exits: bool = False,
        classification: str = "unclassified",
        retention_id: str = "default",
    ) -> Work[PayloadT, ResultT]:
        """Register Work: an effect at a provider that is accepted once and done under a permit.

        The contract is immutable: whatever changes in it needs a new version.

        Args:
            name: The contract's name, such as ``billing.charge``.
            version: The contract's version.
            payload: What is accepted: a dataclass, Struct, TypedDict, attrs class, pydantic model or JSON type.
            result: What the provider's success leads to, likewise.
            safety: What may be done while nobody knows whether the provider did it.
            retry: How often and until when it is tried.
            exits: Its executor returns typed exits; needs PROVIDER_KEYED.
            classification: How sensitive the payload is, in the application's words.
            retention_id: The application's rule for keeping it.
        """
        contract = WorkContract(
            name=name,
            version=version,
            payload=payload,
            result=result,
            safety=safety,
            retry=retry,
            exits=exits,
            classification=classification,
            retention_id=retention_id,
        )
        work: Work[PayloadT, ResultT] = Work(contract, self._stores)
        self.registry.work.add(work)
        return work

    def follow_up(self, kind: str, transition: Transition) -> Callable[[F], F]:
        """Register a follow-up function for a job that is named, where the job cannot be imported.

        ``@app.follow_up("send_email", Transition.COMPLETED)`` is ``@send_email.on_completed``.
        """

        def register(function: F) -> F:
            self.registry.follow_up(kind, transition, function)
            return function

        return register

    def on(self, event: type[E]) -> Callable[[Observer[E]], Observer[E]]:
        """Call the decorated function with each event of this class, and of its subclasses.

        For metrics and logs: it runs in worker processes, after the commit, in a thread or task of its
        own. An error of it is logged, and while it is too slow events are dropped; nothing is repeated.
        """

        def register(observer: Observer[E]) -> Observer[E]:
            self.observers.add(event, observer)
            return observer

        return register

    def authorize(self, function: A) -> A:
        """Let the decorated function decide which operator may give which command about Work.

        It gets an OperatorAction and returns True, or the command is refused before anything is read;
        an `async def` one serves `app.works` and `app.scopes` alone. Without one every command is refused.
        """
        self._authorization.use(function)
        return function

    def worker(
        self,
        *,
        queues: Mapping[str, int] | None = None,
        work: Mapping[str, int] | None = None,
        **settings: Any,
    ) -> "Worker":
        """A worker for these jobs and this Work in this process, to be used with ``async with``.

        Args:
            queues: How many jobs of each queue run at the same time; every registered queue by default.
            work: The same for Work by its name; by default everything that has an executor.
            settings: The other fields of `onecommit.worker.WorkerSettings`.
        """
        # Here, because producers do not need the runtime.
        from onecommit.worker import Worker, WorkerSettings

        served = queues or self.default_queues()
        run = self.default_work() if work is None else work
        return Worker(self, WorkerSettings(queues=served, work=run, **settings))

    def default_queues(self) -> dict[str, int]:
        """What a worker serves if nothing is said: every queue that a registered job goes to."""
        return dict.fromkeys(sorted(self.registry.queues), DEFAULT_CONCURRENCY)

    def default_work(self) -> dict[str, int]:
        """What a worker runs if nothing is said: every Work with an executor, a few at a time."""
        names = {work.contract.name for work in self.registry.work.executable}
        return dict.fromkeys(sorted(names), DEFAULT_WORK_CONCURRENCY)

    async def close(self) -> None:
        """Close what async code of this event loop has opened, and an embedded server."""
        await self._stores.async_close()

    async def __aenter__(self) -> Self:
        await self._stores.async_store()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _refuse_unnamed(unnamed: Sequence[object], *, of: str) -> None:
    """For `@app.job` without parentheses, whose only argument is the handler, and `@app.job("email")`."""
    if unnamed:
        raise UsageError(
            f"@app.{of} takes named arguments only",
            remedy=f'Write @app.{of}(), or name what it is given: @app.{of}(queue="email").',
        )


class SyncClient:
    """What an App offers to code that does not await."""

    def __init__(self, stores: Stores, registry: Registry, authorization: Authorization) -> None:
        self._stores = stores
        self.jobs = SyncJobs(stores, registry)
        self.queues = SyncQueues(stores)
        self.dead_letters = SyncDeadLetters(stores)
        self.workers = SyncWorkers(stores)
        self.ring = SyncRing(stores)
        self.callbacks = SyncCallbacks(stores, registry)
        self.works = SyncWorks(stores, registry, authorization)
        self.scopes = SyncScopes(stores, authorization)

    def close(self) -> None:
        """Close the connections that sync code has opened."""
        self._stores.sync_close()

    def __enter__(self) -> Self:
        self._stores.sync_store()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
