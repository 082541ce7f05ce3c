"""Work that waits for an operator, as a worker leaves it behind whose provider never answered."""

from itertools import count
from typing import Any

from onecommit import App, Safety, Work, WorkView
from onecommit.calls import work_attempts
from onecommit.calls.workers import register_worker
from onecommit.domain.work_attempt import WorkCandidate, WorkEnd, WorkEvent
from onecommit.domain.worker import WorkerInfo

from tests.clusters import Database

numbers = count()


def define(app: App, safety: Safety = Safety.RECONCILE_BEFORE_RETRY, **options: Any) -> Work:
    """Work of a name of its own."""
    named = {"version": "1", "payload": dict[str, int], "result": str}
    return app.work(f"charge{next(numbers)}", **named | {"safety": safety} | options)


async def accept(work: Work, payload: Any = None, *, scope: str | None = None) -> Any:
    """One item, in a scope of its own unless it is given."""
    number = next(numbers)
    return await work.accept(
        {"cents": number} if payload is None else payload,
        scope=scope or f"tenant-{number}",
        command_id=f"accept-{number}",
        idempotency_key=f"key-{number}",
    )


async def suspend(app: App, work: Work, *, scope: str | None = None) -> WorkView:
    """Accepted Work whose provider never answered."""
    accepted = await accept(work, scope=scope)
    view = await app.works.get(accepted.work_id)
    store = await app._stores.async_store()
    info = WorkerInfo(host="h", pid=1, version="0", queues=())
    worker = await store.run(register_worker("w", info, epoch=store.epoch))
    candidate = WorkCandidate(
        scope=view.scope,
        work_id=view.work_id,
        revision=view.revision,
        contract=work.contract.key,
    )
    claim = work_attempts.claim_work(
        view.scope, [candidate], owner=worker, request=1, epoch=store.epoch
    )
    [claimed] = (await store.run(claim)).claimed
    assert (await store.run(work_attempts.acquire_permit(claimed.fence))).is_given
    assert (await store.run(work_attempts.admit_invocation(claimed.fence))).is_given
    unknown = WorkEnd(event=WorkEvent.AMBIGUOUS, code="app.timeout")
    await store.run(work_attempts.complete_work(claimed.fence, unknown))
    view = await app.works.get(accepted.work_id)
    assert view.state.is_suspended, view
    return view


def leave_behind(database: Database, *work_ids: int) -> None:
    """Pending Work as a claim leaves it that found an older epoch."""
    with database.connect() as owner:
        owner.execute(
            "update onecommit.work set state = 'suspended_contract_unavailable', code = 'runtime_epoch_mismatch',"
            " revision = revision + 1 where work_id = any (%s)",
            [list(work_ids)],
        )
        owner.execute(
            "update onecommit.dispatch set state = 'suspended', expected_revision = expected_revision + 1"
            " where work_id = any (%s)",
            [list(work_ids)],
        )
