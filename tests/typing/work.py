"""Work keeps the types of its payload and result."""

from dataclasses import dataclass
from typing import assert_type

from psycopg import AsyncConnection, Connection

from onecommit import (
    Accepted,
    App,
    Applied,
    Duplicate,
    FailedTerminal,
    NotApplied,
    Safety,
    Succeeded,
    SyncWorkInvocation,
    WorkInquiry,
    WorkInvocation,
)

app = App()


@dataclass
class Charge:
    cents: int


@dataclass
class Charged:
    reference: str


charge = app.work(
    "billing.charge", version="1", payload=Charge, result=Charged, safety=Safety.PROVIDER_KEYED
)
typed = app.work(
    "billing.charge",
    version="2",
    payload=Charge,
    result=Charged,
    safety=Safety.PROVIDER_KEYED,
    exits=True,
)


@charge.executor
async def run(invocation: WorkInvocation, payload: Charge) -> Charged:
    return Charged(str(invocation.activity_id))


@charge.executor
def run_in_a_thread(invocation: SyncWorkInvocation, payload: Charge) -> Charged:
    return Charged(str(payload.cents))


@charge.executor  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]
async def run_wrongly(invocation: WorkInvocation, payload: Charge) -> str:
    return "paid"


@typed.exit_executor
async def run_typed(
    invocation: WorkInvocation, payload: Charge
) -> Succeeded[Charged] | FailedTerminal:
    return Succeeded(Charged("r")) if payload.cents else FailedTerminal("app.no_amount")


@charge.reconciler
async def ask(inquiry: WorkInquiry, payload: Charge) -> Applied[Charged] | NotApplied:
    return Applied(Charged(str(inquiry.activity_id)))


async def accept(psycopg_async: AsyncConnection, psycopg_sync: Connection) -> None:
    made = await charge.accept(Charge(5), scope="s", command_id="c", idempotency_key="k")
    assert_type(made, Accepted | Duplicate)
    transaction = charge.in_tx(psycopg_async)
    await transaction.accept(Charge(5), scope="s", command_id="c", idempotency_key="k")
    again = charge.in_tx(psycopg_sync).accept(
        Charge(5), scope="s", command_id="c", idempotency_key="k"
    )
    assert_type(again, Accepted | Duplicate)

    await charge.accept(5, scope="s", command_id="c", idempotency_key="k")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await charge.accept(Charge(5), scope="s", command_id="c")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def hand_over(connection: AsyncConnection) -> bool:
    await connection.execute("insert into handover default values")
    return True


async def no_answer(connection: AsyncConnection) -> None:
    await connection.execute("insert into handover default values")


async def prepare(invocation: WorkInvocation, connection: AsyncConnection) -> None:
    assert_type(await invocation.handoff(connection, hand_over), bool)
    await invocation.handoff(connection, no_answer)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
