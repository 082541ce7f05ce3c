"""What a handler is given: its job, and the ways to talk about it while it runs."""

import logging
from collections.abc import MutableMapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from onecommit.calls.finalization import complete_job
from onecommit.domain.attempt import Attempt
from onecommit.domain.callback import Callback, callback_timeout_us, checked_callback_name
from onecommit.domain.identity import JobId, RunLease
from onecommit.domain.job import Parent
from onecommit.domain.payload import encode_result
from onecommit.domain.token import FinalizationReceipt, FinalizationToken
from onecommit.drivers.driver import (
    AsyncCallerConnection,
    SyncCallerConnection,
    async_driver_for,
    sever_if_sync,
    sync_driver_for,
)
from onecommit.errors import InvalidArgument, StaleAttempt, UsageError

_logger = logging.getLogger("onecommit.job")
_ONE_DAY = timedelta(days=1)


class AttemptPort(Protocol):
    """What a context asks of the runtime that runs its attempt; callable from any thread."""

    schema: str

    def is_cancelled(self, attempt: Attempt) -> bool:
        """Whether the attempt was asked to stop."""

    def set_progress(self, attempt: Attempt, progress: str) -> None:
        """Take note of progress, a JSON text; it is stored a little later, the newest wins."""

    async def flush_progress(self, attempt: Attempt) -> None:
        """Return when the newest progress is stored."""

    def flush_progress_from_thread(self, attempt: Attempt) -> None:
        """The same for a handler that runs in a thread."""

    async def register_callback(
        self, attempt: Attempt, *, timeout_us: int, name: str | None
    ) -> Callback:
        """Register a callback of the attempt."""

    async def wait_for_callback(self, callback: Callback) -> Any:
        """Return the payload that the callback was resumed with."""

    def register_callback_from_thread(
        self, attempt: Attempt, *, timeout_us: int, name: str | None
    ) -> Callback:
        """The same for a handler that runs in a thread."""

    def wait_for_callback_from_thread(self, callback: Callback) -> Any:
        """The same for a handler that runs in a thread."""


class _JobLog(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **kwargs.get("extra", {})}
        return msg, kwargs


class _Context:
    """What both kinds of context share."""

    __slots__ = ("_attempt", "_deadline", "_port", "_progress")

    def __init__(
        self, attempt: Attempt, port: AttemptPort, *, deadline: datetime | None = None
    ) -> None:
        self._attempt = attempt
        self._port = port
        self._deadline = deadline
        self._progress: str | None = None

    @property
    def job_id(self) -> JobId:
        """The job."""
        return self._attempt.job_id

    @property
    def kind(self) -> str:
        """The name under which its handler is registered."""
        return self._attempt.kind

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._attempt.attempt

    @property
    def max_attempts(self) -> int:
        """After so many failed attempts the job goes to the dead letters."""
        return self._attempt.max_attempts

    @property
    def run_lease(self) -> RunLease:
        """Names this attempt; no other attempt of the job has the same."""
        return self._attempt.run_lease

    @property
    def created_at(self) -> datetime:
        """When the job was enqueued."""
        return self._attempt.created_at

    @property
    def parent(self) -> Parent | None:
        """The job that this one waited for and how it ended; None if it was enqueued without `after`."""
        return self._attempt.stored_options().parent

    @property
    def deadline(self) -> datetime | None:
        """When this attempt times out, by the clock of the database."""
        return self._deadline

    @property
    def is_cancelled(self) -> bool:
        """Whether the attempt was asked to stop: by an operator, its timeout or a shutdown."""
        return self._port.is_cancelled(self._attempt)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """The logger ``onecommit.job``, whose records carry job_id, kind and attempt."""
        extra = {"job_id": self.job_id, "kind": self.kind, "attempt": self.attempt}
        return _JobLog(_logger, extra)

    def set_progress(self, progress: Any) -> None:
        """Publish a JSON value that operators see; stored a little later, the newest wins."""
        text = encode_result(progress, what="progress")
        if text is not None:
            self._progress = text
            self._port.set_progress(self._attempt, text)

    def _own(self, callback: Callback) -> Callback:
        given: object = callback
        if not isinstance(given, Callback):
            raise InvalidArgument(
                "`callback` is not a Callback",
                field="callback",
                remedy="Pass what register_callback returned.",
            )
        if (callback.job_id, callback.run_lease) != (self.job_id, self.run_lease):
            raise UsageError(
                "the callback belongs to another attempt",
                remedy="Register it in this attempt; under the same name it is found again.",
            )
        return callback


class _AsyncContext(_Context):
    __slots__ = ()

    async def flush_progress(self) -> None:
        """Return when the newest progress is stored."""
        await self._port.flush_progress(self._attempt)

    async def register_callback(
        self, *, timeout: timedelta = _ONE_DAY, name: str | None = None
    ) -> Callback:
        """Make a callback that something outside can resolve, once, by its id.

        A callback with a name belongs to the job: a later attempt that registers the name finds it, with
        what came meanwhile. Without a name it ends with the attempt.

        Raises:
            StaleAttempt: The attempt is closed.
        """
        timeout_us = callback_timeout_us(timeout)
        name = checked_callback_name(name)
        return await self._port.register_callback(self._attempt, timeout_us=timeout_us, name=name)

    async def wait_for_callback(self, callback: Callback) -> Any:
        """Wait until the callback is resumed and return its payload, a JSON value.

        Meanwhile the handler keeps no slot of its queue. If the outside completes, fails or retries the
        job instead, the handler is cancelled. Keep no transaction open while you wait.

        Raises:
            CallbackTimedOut: Nobody resolved it in time.
        """
        return await self._port.wait_for_callback(self._own(callback))


class _SyncContext(_Context):
    __slots__ = ()

    def flush_progress(self) -> None:
        """Return when the newest progress is stored."""
        self._port.flush_progress_from_thread(self._attempt)

    def register_callback(
        self, *, timeout: timedelta = _ONE_DAY, name: str | None = None
    ) -> Callback:
        """Make a callback that something outside can resolve; see `JobContext`."""
        timeout_us = callback_timeout_us(timeout)
        name = checked_callback_name(name)
        return self._port.register_callback_from_thread(
            self._attempt, timeout_us=timeout_us, name=name
        )

    def wait_for_callback(self, callback: Callback) -> Any:
        """Wait until the callback is resumed; see `JobContext`. The thread and the slot are kept."""
        return self._port.wait_for_callback_from_thread(self._own(callback))


class JobContext(_AsyncContext):
    """The context of an ``async def`` handler."""

    __slots__ = ()


class SyncJobContext(_SyncContext):
    """The context of a ``def`` handler, which runs in a thread."""

    __slots__ = ()


class _Finalization:
    """What `complete_in_tx` has come to so far."""

    __slots__ = ("error", "receipt")

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.receipt: FinalizationReceipt | None = None

    def succeeded(self, receipt: FinalizationReceipt) -> FinalizationReceipt:
        self.error = None
        self.receipt = receipt
        return receipt

    def failed(self, error: BaseException) -> None:
        """Take note of the error; it says so itself if this was a second completion."""
        self.error = error
        if isinstance(error, StaleAttempt) and self.receipt is not None:
            error.args = (
                "complete_in_tx was called a second time, and the attempt is not open any more",
            )
            error.remedy = "Call it once, as the last statement of the transaction."


class _Finalizing(_Context):
    __slots__ = ("_finalization",)

    def __init__(
        self, attempt: Attempt, port: AttemptPort, *, deadline: datetime | None = None
    ) -> None:
        super().__init__(attempt, port, deadline=deadline)
        self._finalization = _Finalization()

    @property
    def token(self) -> FinalizationToken:
        """The authority to complete this attempt, for callers of the SQL function `complete_job`."""
        return self._attempt.token

    @property
    def finalization_error(self) -> BaseException | None:
        """What the last `complete_in_tx` raised, if it did."""
        return self._finalization.error


class CallerOwnedJobContext(_AsyncContext, _Finalizing):
    """The context of an ``async def`` handler that completes its attempt in its own transaction."""

    __slots__ = ()

    @property
    def sync(self) -> "SyncCallerOwnedJobContext":
        """The same attempt for code that the handler runs in a thread, on a sync connection."""
        twin = SyncCallerOwnedJobContext(self._attempt, self._port, deadline=self._deadline)
        twin._progress = self._progress  # noqa: SLF001 - of the same attempt
        twin._finalization = self._finalization  # noqa: SLF001
        return twin

    async def complete_in_tx(self, connection: AsyncCallerConnection) -> FinalizationReceipt:
        """Complete this attempt in the transaction that is open on the connection.

        What the transaction wrote and the completion commit together. After any error here the
        connection is closed, so that what it wrote cannot be committed without the completion.

        Raises:
            StaleAttempt: Another outcome was recorded; this attempt must not write.
            SavepointRefused: The call stands inside a savepoint.
            TransactionTooOld: The transaction began before the claim, or long ago.
            EpochFenced: The store has moved on to another runtime epoch.
            FeatureDisabled: Caller-owned completion is not enabled for the queue.
            UsageError: No transaction is open.
        """
        try:
            driver = async_driver_for(connection, schema=self._port.schema)
        except UsageError as error:
            self._finalization.failed(error)
            sever_if_sync(connection)
            raise
        try:
            receipt = await driver.run(complete_job(self.token, progress=self._progress))
            return self._finalization.succeeded(receipt)
        except BaseException as error:
            self._finalization.failed(error)
            await driver.sever()
            raise


class SyncCallerOwnedJobContext(_SyncContext, _Finalizing):
    """The context of a ``def`` handler that completes its attempt in its own transaction."""

    __slots__ = ()

    def complete_in_tx(self, connection: SyncCallerConnection) -> FinalizationReceipt:
        """Complete this attempt in the open transaction; see `CallerOwnedJobContext`."""
        try:
            driver = sync_driver_for(connection, schema=self._port.schema)
        except UsageError as error:
            self._finalization.failed(error)
            raise
        try:
            receipt = driver.run(complete_job(self.token, progress=self._progress))
            return self._finalization.succeeded(receipt)
        except BaseException as error:
            self._finalization.failed(error)
            driver.sever()
            raise
