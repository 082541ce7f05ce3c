"""What operators do to jobs and queues; each names who did it and why."""

from collections.abc import Iterable

from onecommit.calls.call import Call, Routine, Rows, read_nothing
from onecommit.calls.literals import id_array
from onecommit.domain.arguments import checked_text
from onecommit.domain.identity import JobId
from onecommit.domain.job import JobResult

_ON_JOBS = {"p_job_ids": "bigint[]", "p_actor": "text", "p_reason": "text", "p_epoch": "bigint"}
_ON_A_QUEUE = {"p_queue": "text", "p_actor": "text", "p_reason": "text", "p_epoch": "bigint"}

CANCEL_JOBS = Routine("cancel_jobs", _ON_JOBS, ("job_id", "result"))
RETRY_DEAD_JOBS = Routine("retry_dead_jobs", _ON_JOBS, ("job_id", "result"))
PURGE_DEAD_JOBS = Routine("purge_dead_jobs", _ON_JOBS, ("job_id", "result"))
PAUSE_QUEUE = Routine("pause_queue", _ON_A_QUEUE, ("pause_queue",))
RESUME_QUEUE = Routine("resume_queue", _ON_A_QUEUE, ("resume_queue",))
DISABLE_CALLER_OWNED = Routine("disable_caller_owned", _ON_A_QUEUE, ("disable_caller_owned",))
ALLOW_CALLER_OWNED = Routine("allow_caller_owned", _ON_A_QUEUE, ("allow_caller_owned",))


def on_jobs(
    routine: Routine, job_ids: Iterable[int], *, actor: str, reason: str, epoch: int
) -> Call[dict[JobId, JobResult]]:
    """Cancel, retry or purge jobs: `routine` says which."""
    arguments = (id_array(job_ids, field="job_ids"), *_who(actor, reason), str(epoch))
    return Call(routine, arguments, _read_results)


def on_queue(routine: Routine, queue: str, *, actor: str, reason: str, epoch: int) -> Call[None]:
    """Pause or resume a queue, disable or allow caller-owned completion: `routine` says which."""
    arguments = (checked_text(queue, field="queue"), *_who(actor, reason), str(epoch))
    return Call(routine, arguments, read_nothing)


def _who(actor: str, reason: str) -> tuple[str, str]:
    return checked_text(actor, field="actor"), checked_text(reason, field="reason")


def _read_results(rows: Rows) -> dict[JobId, JobResult]:
    return {JobId(job_id): JobResult(result) for job_id, result in rows}
