"""Asks the store what it holds about attempts; questions that arise during a call share the next one."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

from onecommit.calls.finalization import attempt_status, completed_attempts
from onecommit.domain.attempt import Attempt
from onecommit.domain.evidence import AttemptState, AttemptStatus
from onecommit.domain.job import Outcome
from onecommit.errors import StoreUnavailable
from onecommit.store.async_store import AsyncStore
from onecommit.worker.tasks import Tasks

_COMPLETED = AttemptStatus(state=AttemptState.CLOSED, outcome=Outcome.COMPLETED)


class Inquiry:
    """The evidence about attempts, as the store has it at the moment of the question."""

    def __init__(self, store: AsyncStore, *, on_error: Callable[[BaseException], None]) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._calls = Tasks(on_error=on_error)
        self._waiting: list[_Question] = []
        self._is_asking = False

    async def status(self, attempt: Attempt, *, has_receipt: bool) -> AttemptStatus | None:
        """The evidence about one attempt, or None if the store cannot be asked now.

        With a receipt the usual answer is "completed", which many attempts can ask for at once.
        """
        try:
            if has_receipt and await self._is_completed(attempt):
                return _COMPLETED
            return await self._store.run(attempt_status(attempt.token))
        except StoreUnavailable:
            return None

    async def _is_completed(self, attempt: Attempt) -> bool:
        question = _Question(attempt, self._loop.create_future())
        self._waiting.append(question)
        if not self._is_asking:
            self._is_asking = True
            self._calls.spawn(self._answer_waiting(), name="onecommit:inquiry")
        return await question.answer

    async def _answer_waiting(self) -> None:
        while self._waiting:
            questions, self._waiting = self._waiting, []
            by_chapter: defaultdict[int, list[_Question]] = defaultdict(list)
            for question in questions:
                by_chapter[question.attempt.chapter].append(question)
            for chapter, together in by_chapter.items():
                await self._answer(chapter, together)
        self._is_asking = False

    async def _answer(self, chapter: int, questions: "Sequence[_Question]") -> None:
        attempts = [question.attempt for question in questions]
        try:
            completed = await self._store.run(completed_attempts(chapter, attempts))
        except Exception as error:  # noqa: BLE001  each asker deals with it
            for question in questions:
                question.fail(error)
        else:
            for number, question in enumerate(questions, start=1):
                question.tell(number in completed)


class _Question:
    """One attempt and who waits to hear of it; the asker may have given up meanwhile."""

    __slots__ = ("answer", "attempt")

    def __init__(self, attempt: Attempt, answer: asyncio.Future[bool]) -> None:
        self.attempt = attempt
        self.answer = answer

    def tell(self, completed: bool) -> None:  # noqa: FBT001
        if not self.answer.done():
            self.answer.set_result(completed)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
