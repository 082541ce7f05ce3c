"""Runs the jobs of one queue."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any

from onecommit.app.context import AttemptPort
from onecommit.domain.attempt import Attempt
from onecommit.errors import InvalidArgument
from onecommit.worker import forking
from onecommit.worker.jobs.completer import Completer
from onecommit.worker.jobs.executor import Executor
from onecommit.worker.jobs.kind import Kind
from onecommit.worker.jobs.running import Run, current_task
from onecommit.worker.jobs.suspension import resume
from onecommit.worker.tasks import Tasks

_TURN_SECONDS = 0.001
"""How long jobs that never wait may hold the event loop before others have their turn."""


class Station:
    """Runs waiting jobs in order, at most `concurrency` of them at a time.

    A *server* is a task that runs one job after another. The first job in it that really waits for
    something keeps the task to itself, and another server takes over: so each handler that waits has a
    task and a context of its own, and a job that never waits costs no task at all.
    """

    def __init__(
        self,
        queue: str,
        *,
        concurrency: int,
        kinds: Mapping[str, Kind],
        executor: Executor,
        completer: Completer,
        port: AttemptPort,
        on_error: Callable[[BaseException], None],
    ) -> None:
        self.queue = queue
        self.running = 0
        """Jobs that wait for something and keep a slot."""
        self.parked = 0
        """Handlers that wait for callbacks."""
        self.ended = 0
        """Jobs that have ended since the start."""
        self.low_mark = 0
        """With no more than this waiting, `on_low` is called; once, until it is set again."""
        self.on_low: Callable[[], None] = lambda: None
        self.current: Attempt | None = None
        """The job that was stepped into last: the one to blame when the loop is blocked."""
        self._concurrency = concurrency
        self._kinds = kinds
        self._executor = executor
        self._completer = completer
        self._port = port
        self._stock: deque[Attempt] = deque()
        self._skew = timedelta(0)
        self._serving = False
        self._closed = False
        self._servers = Tasks(on_error=on_error)
        self._returning: deque[asyncio.Future[None]] = deque()
        self._name = f"onecommit:{queue}"
        self._context = contextvars.copy_context()
        self._depth = forking.depth

    @property
    def waiting(self) -> int:
        """Jobs that are claimed and have not started."""
        return len(self._stock)

    async def wait(self, *, timeout: float | None = None) -> bool:
        """Wait until nothing runs here any more; false if that takes longer than `timeout`."""
        return await self._servers.wait(timeout=timeout)

    async def settle(self) -> None:
        """Wait until nothing runs here but handlers that wait for callbacks."""
        while len(self._servers) > self.parked:
            await self._servers.wait_for_change()

    def park(self, run: Run, *, free_slot: bool) -> None:
        """The handler waits for a callback; others may run in its place if `free_slot` says so."""
        run.parked += 1
        if run.parked == 1:
            self.parked += 1
            self._servers.note_change()
        if free_slot and run.has_slot:
            run.has_slot = False
            self._free_slot()

    def unpark(self, run: Run) -> None:
        """It does not wait any more; before it goes on it takes its slot back."""
        run.parked -= 1
        if run.parked == 0:
            self.parked -= 1

    async def take_slot_back(self, run: Run) -> None:
        """Wait until a slot is free; who comes back goes before jobs that have not started."""
        while not run.has_slot:
            if self.running < self._concurrency:
                run.has_slot = True
                self.running += 1
                return
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._returning.append(turn)
            try:
                await turn
            finally:
                self._returning.remove(turn)

    def is_served_by(self, task: "asyncio.Task[object]") -> bool:
        """Whether the task runs jobs of this queue."""
        return task.get_name() == self._name

    def add(self, attempts: Sequence[Attempt], *, skew: timedelta) -> None:
        """Take more jobs. `skew`: how far the database clock is ahead of ours."""
        self._skew = skew
        self._stock.extend(attempts)
        self._staff()

    def take_back(self) -> list[Attempt]:
        """Give up every job that has not started."""
        unstarted = list(self._stock)
        self._stock.clear()
        return unstarted

    def close(self) -> list[Attempt]:
        """Start no more jobs, those included that still come; give up those that wait."""
        self._closed = True
        return self.take_back()

    def drop(self, closed: Collection[tuple[int, int]]) -> list[Attempt]:
        """Give up those waiting jobs whose attempts are closed already."""
        dropped = [a for a in self._stock if (a.job_id, a.run_lease) in closed]
        for attempt in dropped:
            self._stock.remove(attempt)
        return dropped

    async def cancel(self, *, timeout: float) -> None:
        """Cancel whatever still runs."""
        await self._servers.cancel(timeout=timeout)

    def _staff(self) -> None:
        """Put a server to work if there is a job, a free slot and nobody at it."""
        free = self.running + len(self._returning) < self._concurrency
        if self._stock and free and not self._serving and not self._closed:
            self._serving = True
            # A copy of a context of our own: what a handler sets must not reach the next one.
            self._servers.spawn(self._serve(), name=self._name, context=self._context.copy())

    async def _serve(self) -> None:
        stock = self._stock
        task = current_task()
        turn_ends = monotonic() + _TURN_SECONDS
        while stock and self.running < self._concurrency:
            attempt = stock.popleft()
            if len(stock) <= self.low_mark:
                self._run_low()
            if await self._run(attempt):
                return  # that job kept this task, and somebody else is serving
            if task.cancelling() or contextvars.copy_context() != self._context:
                break  # what that handler left behind must not reach the next one
            if monotonic() > turn_ends:
                self._completer.nudge()
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    break
                turn_ends = monotonic() + _TURN_SECONDS
        self._completer.nudge()
        self._serving = False
        self._staff()

    def _run_low(self) -> None:
        self.low_mark = -1
        self.on_low()

    async def _run(self, attempt: Attempt) -> bool:
        """Run one job to its end; true if it had to wait for something."""
        kind = self._kinds.get(attempt.kind)
        if kind is None:
            self._executor.refuse_unknown(attempt, self.queue)
            self.ended += 1
            return False
        self.current = attempt
        run: Run | None = None
        result: Any = None
        failure: BaseException | None = None
        arguments = self._arguments(attempt, kind)
        if arguments is None:
            self.ended += 1
            return False
        try:
            context = kind.context(attempt, self._port, skew=self._skew)
            handler = kind.call(context, **arguments)
            try:
                awaited = handler.send(None)
            except StopIteration as stop:
                result = stop.value
            else:
                run = self._hold(attempt, kind)
                result = await resume(handler, awaited)
        except BaseException as error:
            # Every exit of a handler is the outcome of its job.
            if isinstance(error, GeneratorExit) and run is not None and not run.is_current:
                raise  # this coroutine is thrown away together with its loop
            failure = error
        if forking.depth != self._depth:
            forking.end_child(failure)
        if result is None and failure is None and self._executor.is_plain(kind, run):
            self._completer.complete(attempt)
            self.ended += 1
            if run is None:
                return False
            self._let_go(run)
            return True
        run = run or self._hold(attempt, kind)
        try:
            await self._executor.conclude(run, result=result, error=failure)
        finally:
            failure = None  # it holds this frame, which holds it
            self.ended += 1
            self._let_go(run)
        return True

    def _arguments(self, attempt: Attempt, kind: Kind) -> dict[str, Any] | None:
        """What to call the handler with; None if it cannot be called."""
        try:
            return kind.decode(attempt.args)
        except InvalidArgument as error:
            self._executor.refuse_undecodable(attempt, error)
        except Exception as error:  # noqa: BLE001 - a model's own code reads its JSON
            self._executor.fail_before_start(attempt, kind, error)
        return None

    def _hold(self, attempt: Attempt, kind: Kind) -> Run:
        """The job waits for something: it keeps this task and a slot until it has ended."""
        run = self._executor.hold(attempt, kind)
        run.station = self
        self.running += 1
        self._serving = False
        self._staff()
        return run

    def _let_go(self, run: Run) -> None:
        self._executor.let_go(run)
        if run.has_slot:
            self._free_slot()

    def _free_slot(self) -> None:
        self.running -= 1
        turn = next((turn for turn in self._returning if not turn.done()), None)
        if turn is not None:
            turn.set_result(None)
        self._staff()
        if len(self._stock) <= self.low_mark:
            self._run_low()
