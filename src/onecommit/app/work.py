"""Registered Work: its contract, who runs it, and every way to accept it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from onecommit.app.async_acceptor import AsyncAcceptor
from onecommit.app.stores import Stores
from onecommit.app.sync_acceptor import SyncAcceptor
from onecommit.app.work_contract import WorkContract
from onecommit.app.work_invocation import SyncWorkInvocation, WorkInvocation
from onecommit.domain.signature import check_function, is_async
from onecommit.domain.work import WorkInquiry
from onecommit.domain.work_exit import Evidence, WorkExit
from onecommit.drivers.driver import (
    AsyncCallerConnection,
    SyncCallerConnection,
    async_driver_for,
    is_async_connection,
    sync_driver_for,
)
from onecommit.errors import WorkRegistryRefused

PayloadT = TypeVar("PayloadT")
ResultT = TypeVar("ResultT")
F = TypeVar("F", bound=Callable[..., Any])

AsyncExecutor = Callable[[WorkInvocation, PayloadT], Awaitable[ResultT]]
SyncExecutor = Callable[[SyncWorkInvocation, PayloadT], ResultT]
AsyncExitExecutor = Callable[[WorkInvocation, PayloadT], Awaitable[WorkExit[ResultT]]]
AsyncReconciler = Callable[[WorkInquiry, PayloadT], Awaitable[Evidence[ResultT]]]
SyncReconciler = Callable[[WorkInquiry, PayloadT], Evidence[ResultT]]
SyncExitExecutor = Callable[[SyncWorkInvocation, PayloadT], WorkExit[ResultT]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """The function that calls the provider; a plain function runs in a thread."""

    function: Callable[..., Any]
    is_async: bool
    returns_exit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """The function that finds out what the provider did, and changes nothing there."""

    function: Callable[..., Any]
    is_async: bool


class Work(AsyncAcceptor[PayloadT], Generic[PayloadT, ResultT]):
    """Work registered with `app.work(...)`: accepts it, and takes the functions that do it."""

    def __init__(self, contract: WorkContract, stores: Stores) -> None:
        super().__init__(contract, stores)
        self.runs: Executor | None = None
        self.reconciles: Reconciler | None = None

    @property
    def label(self) -> str:
        """Name and version as a worker lists them."""
        return f"{self.contract.name}/{self.contract.version}"

    @property
    def sync(self) -> SyncAcceptor[PayloadT]:
        """The same for callers that do not await."""
        return SyncAcceptor(self.contract, self._stores)

    @overload
    def in_tx(self, connection: AsyncCallerConnection) -> AsyncAcceptor[PayloadT]: ...
    @overload
    def in_tx(self, connection: SyncCallerConnection) -> SyncAcceptor[PayloadT]: ...
    def in_tx(
        self, connection: AsyncCallerConnection | SyncCallerConnection
    ) -> AsyncAcceptor[PayloadT] | SyncAcceptor[PayloadT]:
        """Accept in the transaction that is open on the connection: the Work exists if it commits.

        Takes a connection or session of psycopg, psycopg2, asyncpg, SQLAlchemy or Django. Awaited for an
        async one.
        """
        schema = self._stores.schema
        if is_async_connection(connection):
            driver = async_driver_for(connection, schema=schema)  # type: ignore[arg-type]
            return AsyncAcceptor(self.contract, self._stores, driver=driver)
        sync_driver = sync_driver_for(connection, schema=schema)  # type: ignore[arg-type]
        return SyncAcceptor(self.contract, self._stores, driver=sync_driver)

    @overload
    def executor(
        self, function: AsyncExecutor[PayloadT, ResultT]
    ) -> AsyncExecutor[PayloadT, ResultT]: ...
    @overload
    def executor(
        self, function: SyncExecutor[PayloadT, ResultT]
    ) -> SyncExecutor[PayloadT, ResultT]: ...
    def executor(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the function that calls the provider and returns the result.

        An `async def` gets a WorkInvocation and the payload, a `def` a SyncWorkInvocation. What it raises
        says nothing about the provider: the contract's safety decides what comes next.
        """
        return self._execute(function, returns_exit=False)

    @overload
    def exit_executor(
        self, function: AsyncExitExecutor[PayloadT, ResultT]
    ) -> AsyncExitExecutor[PayloadT, ResultT]: ...
    @overload
    def exit_executor(
        self, function: SyncExitExecutor[PayloadT, ResultT]
    ) -> SyncExitExecutor[PayloadT, ResultT]: ...
    def exit_executor(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function that returns a typed exit; of Work that was registered with `exits=True`."""
        return self._execute(function, returns_exit=True)

    @overload
    def reconciler(
        self, function: AsyncReconciler[PayloadT, ResultT]
    ) -> AsyncReconciler[PayloadT, ResultT]: ...
    @overload
    def reconciler(
        self, function: SyncReconciler[PayloadT, ResultT]
    ) -> SyncReconciler[PayloadT, ResultT]: ...
    def reconciler(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the function that asks the provider what became of an attempt, without side effects.

        It gets a WorkInquiry and the payload, and returns Applied, NotApplied or Unknown. No connection
        is held while it runs.
        """
        check_function(function, role="reconciler")
        if self.reconciles is not None:
            raise self._registered("reconciler")
        self.reconciles = Reconciler(function=function, is_async=is_async(function))
        return function

    def __repr__(self) -> str:
        return f"<Work {self.label!r}, {self.contract.safety.name}>"

    def _execute(self, function: F, *, returns_exit: bool) -> F:
        check_function(function, role="executor")
        if self.runs is not None:
            raise self._registered("executor")
        if returns_exit != self.contract.exits:
            asked, other = ("exit_executor", "executor")[:: 1 if returns_exit else -1]
            raise WorkRegistryRefused(
                f"{self.label} is registered with exits={self.contract.exits} and got an {asked}",
                remedy=f"Use @work.{other}, or register a new version with exits={returns_exit}.",
            )
        self.runs = Executor(
            function=function, is_async=is_async(function), returns_exit=returns_exit
        )
        return function

    def _registered(self, role: str) -> WorkRegistryRefused:
        return WorkRegistryRefused(
            f"{self.label} already has its {role}",
            remedy="Register one for each version.",
        )
