"""Requests of Work for tests of the SQL functions, as values and as the arguments of accept_work."""

from dataclasses import replace
from typing import Any

from onecommit.calls.work_acceptance import ACCEPT_WORK, accept_work
from onecommit.domain.work import Safety
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
    return engine.call("accept_work", **sent | raw)[0]


def store_of(engine: Engine) -> str:
    """The identity of the store that the engine is connected to."""
    return str(engine.value("select store_id from onecommit.store_status()"))
