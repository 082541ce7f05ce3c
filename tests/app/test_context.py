"""What a handler can do with its context."""

import logging
from datetime import UTC, datetime

import msgspec
import pytest

from onecommit import InvalidArgument, JobContext, Outcome, Parent, SyncJobContext
from onecommit.domain.attempt import Attempt

ATTEMPT = Attempt(
    lane=1,
    chapter=2,
    seq=3,
    claim_slot=2,
    batch_id=4,
    batch_index=1,
    receipt_id=5,
    job_id=6,
    run_lease=7,
    attempt=2,
    max_attempts=20,
    kind="send",
    args="{}",
    options='{"timeout_us": 5, "unique": "ab"}',
    created_us=0,
    claimed_at=datetime(2026, 1, 1, tzinfo=UTC),
    deadline=None,
)


class Port:
    """A runtime that remembers what it was told."""

    schema = "onecommit"

    def __init__(self) -> None:
        self.cancelled: set[int] = set()
        self.progress: list[tuple[int, str]] = []
        self.flushed: list[int] = []

    def is_cancelled(self, attempt: Attempt) -> bool:
        return attempt.job_id in self.cancelled

    def set_progress(self, attempt: Attempt, progress: str) -> None:
        self.progress.append((attempt.job_id, progress))

    async def flush_progress(self, attempt: Attempt) -> None:
        self.flushed.append(attempt.job_id)

    def flush_progress_from_thread(self, attempt: Attempt) -> None:
        self.flushed.append(attempt.job_id)


def test_a_context_says_what_runs():
    deadline = datetime(2026, 1, 1, 1, tzinfo=UTC)
    ctx = JobContext(ATTEMPT, Port(), deadline=deadline)
    assert (ctx.job_id, ctx.kind, ctx.attempt, ctx.max_attempts, ctx.run_lease) == (
        6,
        "send",
        2,
        20,
        7,
    )
    assert (ctx.deadline, ctx.created_at) == (deadline, datetime(2000, 1, 1, tzinfo=UTC))


def test_a_cancellation_is_seen():
    port = Port()
    ctx = JobContext(ATTEMPT, port)
    assert not ctx.is_cancelled
    port.cancelled.add(6)
    assert ctx.is_cancelled


async def test_progress_is_handed_over_as_json_and_flushed_on_request():
    port = Port()
    ctx = JobContext(ATTEMPT, port)
    ctx.set_progress({"done": 3})
    await ctx.flush_progress()
    SyncJobContext(ATTEMPT, port).flush_progress()
    assert (port.progress, port.flushed) == ([(6, '{"done":3}')], [6, 6])


def test_progress_that_cannot_be_stored_is_refused():
    port = Port()
    with pytest.raises(InvalidArgument, match=r"`progress\[0\]`"):
        JobContext(ATTEMPT, port).set_progress([float("nan")])
    assert port.progress == []


def test_log_records_carry_the_job(caplog):
    with caplog.at_level(logging.INFO, logger="onecommit.job"):
        JobContext(ATTEMPT, Port()).log.info("half-way", extra={"step": 2})
    (record,) = caplog.records
    assert (record.job_id, record.kind, record.attempt, record.step) == (6, "send", 2, 2)


def test_an_attempt_knows_what_travels_with_its_job():
    assert ATTEMPT.stored_options().timeout_us == 5
    assert ATTEMPT.may_hold_unique_key


@pytest.mark.parametrize(
    ("options", "parent"),
    [
        (None, None),
        ('{"tags": ["a"]}', None),
        (
            '{"parent": {"job_id": 3, "outcome": "completed"}}',
            Parent(job_id=3, outcome=Outcome.COMPLETED),
        ),
        (
            '{"parent": {"job_id": 3, "outcome": "failed", "code": "timeout"}}',
            Parent(job_id=3, outcome=Outcome.FAILED, code="timeout"),
        ),
        ('{"parent": {"job_id": 3}}', Parent(job_id=3)),
    ],
)
def test_a_dependant_is_told_of_its_parent(options: str | None, parent: Parent | None):
    ctx = JobContext(msgspec.structs.replace(ATTEMPT, options=options), Port())
    assert ctx.parent == parent
    assert parent is None or parent.completed == (parent.outcome is Outcome.COMPLETED)
