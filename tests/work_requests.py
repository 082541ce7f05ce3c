"""Requests of Work for tests of the SQL functions, as values and as the arguments of accept_work."""

from dataclasses import replace
from typing import Any

from psycopg.pq import TransactionStatus

from onecommit.calls.work_acceptance import ACCEPT_WORK, accept_work
from onecommit.domain.identity import WorkerId
from onecommit.domain.work import Safety, WorkFence
from onecommit.domain.work_request import WorkRequest

from tests.engine import Engine

REQUEST = WorkRequest(
    scope="tenant-1",
    command_id="c1",
    idempotency_key="k1",
    contract_name="billing.charge",
    contract_version="1",
    payload=b'{"cents":100}',
    safety=Safety.PROVIDER_KEYED,
)


def request(**changes: Any) -> WorkRequest:
    """The usual request, but for these fields."""
    return replace(REQUEST, **changes)


def arguments(asked: WorkRequest = REQUEST, *, store_id: Any, epoch: int) -> dict[str, Any]:
    """What the call builder sends, by parameter."""
    call = accept_work(asked, store_id=store_id, epoch=epoch)
    return dict(zip(ACCEPT_WORK.parameters, call.arguments, strict=True))


def accept(engine: Engine, asked: WorkRequest = REQUEST, **raw: Any) -> Any:
    """The row that accept_work returns; `raw` replaces single arguments of the function."""
    sent = arguments(asked, store_id=store_of(engine), epoch=engine.epoch)
    return call_as_acceptor(engine, "accept_work", **sent | raw)


def call_as_acceptor(engine: Engine, function: str, **sent: Any) -> Any:
    """The row of a call in the engine's own transaction, made as the role that may make it, if the test has one."""
    role = getattr(engine, "acceptor", None)
    if role is None:
        return engine.call(function, **sent)[0]
    engine.sql(f"set role {role}")
    try:
        return engine.call(function, **sent)[0]
    finally:
        # A transaction that failed takes the role back when it is rolled back.
        if engine.connection.info.transaction_status != TransactionStatus.INERROR:
            engine.sql("reset role")


def store_of(engine: Engine) -> str:
    """The identity of the store that the engine is connected to."""
    return str(engine.value("select store_id from onecommit.store_status()"))


def admitted(engine: Engine, asked: WorkRequest = REQUEST, *, owner: int = 7) -> WorkFence:
    """The fence of Work that was accepted, claimed, permitted and admitted."""
    fence = claimed(engine, asked, owner=owner)
    assert engine.call("acquire_permit", **fence_arguments(fence))[0].outcome == "granted"
    assert engine.call("admit_invocation", **fence_arguments(fence))[0].outcome == "admitted"
    return fence


def claimed(engine: Engine, asked: WorkRequest = REQUEST, *, owner: int = 7) -> WorkFence:
    """The fence of Work that was accepted and claimed."""
    made = accept(engine, asked)
    work = {"p_work_ids": [made.work_id], "p_revisions": [made.revision]}
    [row] = engine.call(
        "claim_work", p_scope_id=asked.scope, **work, p_owner=owner, p_request=made.work_id
    )
    assert row.outcome == "claimed"
    return WorkFence(
        scope=asked.scope,
        work_id=row.work_id,
        attempt=row.attempt,
        lease_generation=row.lease_generation,
        scope_generation=row.scope_generation,
        owner=WorkerId(owner),
        epoch=engine.epoch,
    )


def fence_arguments(fence: WorkFence) -> dict[str, Any]:
    """The fence as the SQL functions take it."""
    return {
        "p_scope_id": fence.scope,
        "p_work_id": fence.work_id,
        "p_attempt": fence.attempt,
        "p_lease_generation": fence.lease_generation,
        "p_scope_generation": fence.scope_generation,
        "p_owner": fence.owner,
        "p_epoch": fence.epoch,
    }
