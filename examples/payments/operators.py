"""What the operators' page calls: what waits and why, and the commands that move it."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, HTTPException, status
from pydantic import BaseModel, StringConstraints

from onecommit import Applied, CommandResult, NotApplied, WorkAction, WorkView

from payments.authorization import Operator
from payments.contracts import Charged, app
from payments.database import record_charged
from payments.reconciliation import reconcile_suspended

router = APIRouter(prefix="/operators")

WHY = {
    WorkAction.RECONCILE: "The transfer may have been made: ask the provider.",
    WorkAction.RETRY_SAFE: "The charge may have been made: the provider knows its key, so send it again.",
    WorkAction.RESOLVE: "It was canceled and may have been charged: look it up, and say what you found.",
    WorkAction.RELEASE: "The database was restored or promoted: look at what the provider has.",
    WorkAction.CANCEL: "No attempt is left: cancel it, and see what it asks for then.",
}


class Command(BaseModel):
    """The page makes an id when it shows the form, so that a second click is the same command."""

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
    reason: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class SeenCommand(Command):
    """A command about the Work as the operator has seen it."""

    revision: int


class Finding(SeenCommand):
    """What the operator has found at the provider: nothing, or this charge."""

    charged: Charged | None = None


@router.get("/work")
async def list_waiting(operator: Operator, scope: str | None = None) -> list[dict[str, Any]]:
    """What waits for an operator, from the newest to the oldest."""
    return [shown(work) for work in await app.works.list(needs_operator=True, scope=scope)]


@router.get("/work/{work_id}")
async def look_at(work_id: int, operator: Operator) -> dict[str, Any]:
    """One item, with what happened to it and each call of the provider."""
    work = await app.works.get(work_id)
    if work is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND)
    events, permits = await app.works.events(work_id), await app.works.permits(work_id)
    return shown(work) | {
        "events": msgspec.to_builtins(events),
        "permits": msgspec.to_builtins(permits),
    }


@router.post("/work/{work_id}/retry")
async def retry(work_id: int, operator: Operator, command: SeenCommand) -> CommandResult:
    """Send it once more; refused where that could do it twice."""
    return await app.works.retry_safe(
        work_id,
        revision=command.revision,
        command_id=command.id,
        actor=operator,
        reason=command.reason,
    )


@router.post("/work/{work_id}/reconcile")
async def reconcile(work_id: int, operator: Operator, command: Command) -> CommandResult:
    """Ask the provider about this one now."""
    return await app.works.reconcile(
        work_id, command_id=command.id, actor=operator, reason=command.reason
    )


@router.post("/work/{work_id}/cancel")
async def cancel(work_id: int, operator: Operator, command: Command) -> CommandResult:
    """Let nothing of it start any more."""
    return await app.works.cancel(
        work_id, command_id=command.id, actor=operator, reason=command.reason
    )


@router.post("/work/{work_id}/resolve")
async def resolve(work_id: int, operator: Operator, finding: Finding) -> CommandResult:
    """Record what the operator has found out about a canceled charge."""
    result = await app.works.resolve(
        work_id,
        NotApplied() if finding.charged is None else Applied(finding.charged),
        revision=finding.revision,
        command_id=finding.id,
        actor=operator,
        reason=finding.reason,
    )
    if finding.charged is not None:  # also when a second click repeats the command
        await record_charged(work_id, finding.charged)
    return result


@router.post("/reconciliations", status_code=status.HTTP_202_ACCEPTED)
async def start_reconciliation(operator: Operator) -> dict[str, int]:
    """Have every waiting transfer looked up; while a run is under way this joins it."""
    enqueued = await reconcile_suspended.enqueue()
    return {"job_id": enqueued.job_id}


def shown(work: WorkView) -> dict[str, Any]:
    """The item as JSON, and why it waits."""
    fields: dict[str, Any] = msgspec.to_builtins(work)
    return fields | {"why": None if work.action is None else WHY[work.action]}
