"""Stands for the payment provider: a program of its own, with test amounts that make it fail as real ones do."""

import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

DECLINED = 402
"""The card is declined."""
BROKEN = 500
"""It is booked, and the first answer is an error."""
BUSY = 503
"""The first time nothing is done."""
SILENT = 504
"""It is booked, and the first time no answer comes."""
LOST = 599
"""The first time nothing is done, and no answer comes."""
UNSURE = 598
"""It is booked, no answer comes, and the first time that it is looked up there is none either."""
REFUSED = 400
"""No such request is taken."""


class Order(BaseModel):
    order: str
    cents: int


class Transfer(BaseModel):
    reference: uuid.UUID
    shop: str
    cents: int


@dataclass
class Books:
    """What was really booked, and which keys and references were seen."""

    charges: dict[str, dict[str, Any]] = field(default_factory=dict)
    payouts: list[dict[str, Any]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def is_first(self, key: str) -> bool:
        """Whether this is the first request of the key."""
        first = key not in self.seen
        self.seen.add(key)
        return first


api = FastAPI(title="Fake payment provider")
books = Books()


@api.post("/charges")
async def charge(
    order: Order, request: Request, idempotency_key: Annotated[str, Header()]
) -> JSONResponse:
    """Book a charge once for each key; a repeated key gets the first answer again."""
    first = books.is_first(idempotency_key)
    if order.cents == REFUSED:
        raise HTTPException(400)
    if first and order.cents in (BUSY, LOST):
        return await fail(order.cents, request)
    booked = books.charges.setdefault(
        idempotency_key,
        order.model_dump()
        | {"reference": f"ch-{uuid.uuid4().hex[:8]}", "paid": order.cents != DECLINED},
    )
    if first and order.cents in (BROKEN, SILENT, UNSURE):
        return await fail(order.cents, request)
    return JSONResponse(booked, status_code=200 if booked["paid"] else 402)


@api.post("/payouts")
async def pay_out(transfer: Transfer, request: Request) -> JSONResponse:
    """Transfer money each time that it is asked to; the reference is only written down."""
    first = books.is_first(str(transfer.reference))
    if first and transfer.cents in (BUSY, LOST):
        return await fail(transfer.cents, request)
    paid = transfer.model_dump(mode="json") | {"transfer": f"tr-{uuid.uuid4().hex[:8]}"}
    books.payouts.append(paid)
    if first and transfer.cents in (BROKEN, SILENT, UNSURE):
        return await fail(transfer.cents, request)
    return JSONResponse(paid)


@api.get("/payouts/{reference}")
async def find_payout(reference: uuid.UUID) -> dict[str, Any]:
    """The transfer of a reference; 404 is a promise: there is none, and no request is under way."""
    for paid in books.payouts:
        if paid["reference"] == str(reference):
            if paid["cents"] == UNSURE and books.is_first(f"look-up of {reference}"):
                raise HTTPException(503)
            return paid
    raise HTTPException(404)


@api.get("/books")
async def show_books() -> dict[str, Any]:
    """What was really booked, for whoever checks."""
    return {"charges": list(books.charges.values()), "payouts": books.payouts}


async def fail(cents: int, request: Request) -> JSONResponse:
    """An error, or silence until the client has given up."""
    if cents in (SILENT, LOST, UNSURE):
        while (await request.receive())["type"] != "http.disconnect":
            continue
    return JSONResponse({}, status_code=503 if cents == BUSY else 500)
