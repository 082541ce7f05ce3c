"""The application of the demo's second part: effects at a provider, one contract for each safety class."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any

import psycopg

from onecommit import (
    App,
    Applied,
    NotApplied,
    OperatorAction,
    Safety,
    SyncWorkInvocation,
    Unknown,
    Work,
    WorkInquiry,
    WorkRetry,
)
from onecommit.demo.journal import Operation
from onecommit.demo.provider import KEY

SCOPE = "shop"
ORDERS = 8
"""Each with Work of every class."""
TABLE = "create table customer_order (number integer primary key, cents integer not null)"

# Short, so that the demo need not wait long for what a killed worker held.
RETRY = WorkRetry(
    initial_delay=timedelta(milliseconds=200),
    max_delay=timedelta(seconds=1),
    lease=timedelta(seconds=3),
    renewal=timedelta(milliseconds=500),
    max_lease=timedelta(minutes=5),
)

app = App()


@dataclass(frozen=True, slots=True)
class Order:
    """What every contract here is about."""

    number: int
    cents: int


def _contract(operation: Operation, safety: Safety) -> Work[Order, str]:
    """The receipt is the result."""
    return app.work(
        operation.value, version="1", payload=Order, result=str, safety=safety, retry=RETRY
    )


limit = _contract(Operation.LIMIT, Safety.IDEMPOTENT)
charge = _contract(Operation.CHARGE, Safety.PROVIDER_KEYED)
transfer = _contract(Operation.TRANSFER, Safety.RECONCILE_BEFORE_RETRY)
letter = _contract(Operation.LETTER, Safety.MANUAL_RESOLUTION)


@app.authorize
def may_operate(action: OperatorAction) -> bool:
    """Whoever has a shell here may give evidence, and nothing else."""
    return action.operation in {"reconcile", "resolve"}


@limit.executor
def set_limit(invocation: SyncWorkInvocation, order: Order) -> str:
    """Setting it twice is setting it once."""
    return _call(Operation.LIMIT, invocation, order)


@charge.executor
def make_charge(invocation: SyncWorkInvocation, order: Order) -> str:
    """The provider knows the key of a repeated call."""
    return _call(Operation.CHARGE, invocation, order)


@transfer.executor
def make_transfer(invocation: SyncWorkInvocation, order: Order) -> str:
    """A second call would be a second transfer."""
    return _call(Operation.TRANSFER, invocation, order)


@transfer.reconciler
def find_transfer(inquiry: WorkInquiry, order: Order) -> Applied[str] | NotApplied | Unknown:
    """Ask what became of it; the provider can say, most of the time."""
    path = f"/{Operation.TRANSFER}/{order.number}"
    status, receipt = _ask("GET", path, key=str(inquiry.activity_id))
    if status == HTTPStatus.OK:
        return Applied(receipt)
    return NotApplied() if status == HTTPStatus.NOT_FOUND else Unknown()


@letter.executor
def send_letter(invocation: SyncWorkInvocation, order: Order) -> str:
    """A second call would be a second letter, and nobody could tell from outside."""
    return _call(Operation.LETTER, invocation, order)


def _call(operation: Operation, invocation: SyncWorkInvocation, order: Order) -> str:
    key = str(invocation.activity_id)
    _, receipt = _ask("POST", f"/{operation}", key=key, body=json.dumps(asdict(order)))
    return str(receipt)


def _ask(method: str, path: str, *, key: str, body: str | None = None) -> tuple[int, Any]:
    """The status and the receipt; raises TimeoutError when the provider stays silent."""
    patience = float(os.environ.get("ONECOMMIT_DEMO_PATIENCE", "1"))
    port = int(os.environ["ONECOMMIT_DEMO_PROVIDER"])
    connection = HTTPConnection("127.0.0.1", port, timeout=patience)
    try:
        connection.request(method, path, body, {KEY: key})
        answer = connection.getresponse()
        return answer.status, json.load(answer).get("receipt")
    finally:
        connection.close()


def accept_orders(conn: psycopg.Connection[Any]) -> None:
    """Accept Work of every class in the transaction that makes the orders."""
    with conn.transaction():
        conn.execute(TABLE)
        for number in range(1, ORDERS + 1):
            order = Order(number, 100 * number)
            conn.execute("insert into customer_order values (%s, %s)", (order.number, order.cents))
            for work in (limit, charge, transfer, letter):
                identity = f"{work.contract.name}:{order.number}"
                work.in_tx(conn).accept(
                    order, scope=SCOPE, command_id=identity, idempotency_key=identity
                )
