"""The job that asks the provider about every payout whose outcome nobody knows."""

from collections import Counter
from collections.abc import AsyncIterator

from onecommit import JobContext, Unique, WorkAction, WorkError, WorkView

from payments.contracts import app

PAGE = 100


@app.job(queue="reconciliation", unique=Unique())
async def reconcile_suspended(ctx: JobContext) -> dict[str, int]:
    """Reconcile what waits for it, and count how each item stands since; one run at a time."""
    states: Counter[str] = Counter()
    async for work in waiting_for_reconciliation():
        try:
            result = await app.works.reconcile(
                work.work_id,
                # Of this job: another attempt of it gives the same command, another job a new one.
                command_id=f"job-{ctx.job_id}-work-{work.work_id}",
                actor="reconciliation",
                reason="the outcome of the transfer is unknown",
            )
        except WorkError as refused:  # it has moved meanwhile, or somebody else is asking
            states[refused.code] += 1
        else:
            states[result.state] += 1
    return dict(states)


async def waiting_for_reconciliation() -> AsyncIterator[WorkView]:
    """Every item whose reconciler can be asked, page by page."""
    before = None
    while page := await app.works.list(needs_operator=True, limit=PAGE, before=before):
        for work in page:
            if work.action is WorkAction.RECONCILE:
                yield work
        before = page[-1].work_id
