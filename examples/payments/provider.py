"""The adapter of the payment provider: turns what HTTP says into what is known, and nothing more."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx

from payments.contracts import Charged, PaidOut


class NothingDone(Exception):
    """The request did not reach the provider, or the provider says that it did nothing."""


class NoAnswer(Exception):
    """The request went out, and no answer came: the provider may or may not have done it."""


class Refused(Exception):
    """The provider does not take such a request; sending it again is of no use."""


class Provider:
    """Its HTTP API. One client for the process, open while the service runs."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def connected(self, url: str, *, timeout: float) -> AsyncIterator[None]:
        """Keep the client open; `timeout` is in seconds, of each step of a request."""
        async with httpx.AsyncClient(base_url=url, timeout=timeout) as self._client:
            yield

    async def charge(self, *, key: UUID, order: str, cents: int) -> Charged:
        """Charge once for each key, however often it is sent.

        Raises:
            NothingDone: It can be sent again.
            NoAnswer: It may have been booked.
            Refused: The provider does not take it.
        """
        answer = await self._send(
            "POST",
            "/charges",
            json={"order": order, "cents": cents},
            headers={"Idempotency-Key": str(key)},
        )
        if answer.status_code == httpx.codes.PAYMENT_REQUIRED:
            return Charged(paid=False, reference=answer.json()["reference"])
        _check(answer)
        return Charged(paid=True, reference=answer.json()["reference"])

    async def pay_out(self, *, reference: UUID, shop: str, cents: int) -> PaidOut:
        """Transfer once for each time that it is sent; the provider only remembers the reference.

        Raises:
            NothingDone, NoAnswer, Refused: As for a charge.
        """
        answer = await self._send(
            "POST", "/payouts", json={"reference": str(reference), "shop": shop, "cents": cents}
        )
        _check(answer)
        return PaidOut(transfer=answer.json()["transfer"])

    async def find_payout(self, reference: UUID) -> PaidOut | None:
        """What was transferred under a reference; None: nothing, and nothing will be.

        Raises:
            NothingDone, NoAnswer: The provider cannot say now.
        """
        answer = await self._send("GET", f"/payouts/{reference}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        _check(answer)
        return PaidOut(transfer=answer.json()["transfer"])

    async def _send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        if self._client is None:
            raise RuntimeError("the provider is not connected")
        try:
            return await self._client.request(method, path, **parts)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise NothingDone from error
        except httpx.TransportError as error:
            raise NoAnswer from error


def _check(answer: httpx.Response) -> None:
    """Raise for an answer that is no result."""
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        raise NothingDone
    if answer.is_client_error:
        raise Refused
    answer.raise_for_status()  # a 500 proves nothing: the safety of the Work decides


provider = Provider()
