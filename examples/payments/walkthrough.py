"""The story: what shops, the provider and operators do, told over HTTP and checked at each step."""

import asyncio
import uuid
from typing import Any

import httpx

from payments import fake_provider
from payments.fake_shop import send
from payments.settings import Settings

PATIENCE = 60.0


async def walk(url: str, provider_url: str, settings: Settings) -> None:
    """Tell it all; an AssertionError is a promise that was not kept."""
    async with (
        httpx.AsyncClient(base_url=url) as service,
        httpx.AsyncClient(base_url=provider_url) as provider,
    ):
        story = Story(service, provider, settings)
        await story.an_order_is_charged_once()
        await story.a_silent_provider_and_an_operator()
        await story.a_payout_is_reconciled()
    print("ok: two charges and one transfer booked, each once")


class Story:
    """Its shop is a new one each time, so that it can be told again on the same database."""

    def __init__(
        self, service: httpx.AsyncClient, provider: httpx.AsyncClient, settings: Settings
    ) -> None:
        self._service, self._provider, self._settings = service, provider, settings
        self._shop = f"shop-{uuid.uuid4().hex[:8]}"

    async def an_order_is_charged_once(self) -> None:
        """The shop sends an event twice, another event for the same order, and one that contradicts it."""
        event = {"id": "evt-1", "shop": self._shop, "order": "o-1", "cents": 1200}
        first = await self._send("orders", event)
        again = await self._send("orders", event)
        other = await self._send("orders", event | {"id": "evt-2"})
        liar = await self._send("orders", event | {"cents": 1})
        assert [first.status_code, again.status_code, other.status_code] == [202, 200, 200]
        assert first.json() == again.json() == other.json()
        assert (liar.status_code, liar.json()["code"]) == (409, "ASDUR102")
        assert (await self._until_paid("orders", "o-1"))["work_state"] == "succeeded"
        assert len(await self._booked("charges", "order", "o-1")) == 1
        print("an order: four deliveries, one charge")

    async def a_silent_provider_and_an_operator(self) -> None:
        """The charge is booked and no answer comes: it waits, is seen, and is sent again with the same key."""
        event = {
            "id": "evt-3",
            "shop": self._shop,
            "order": "o-2",
            "cents": fake_provider.SILENT,
        }
        await self._send("orders", event)
        work = await self._until_waiting()
        assert work["action"] == "retry_safe"
        command = {"id": "click-1", "reason": "the provider is back", "revision": work["revision"]}
        path = f"/operators/work/{work['work_id']}/retry"
        assert (await self._service.post(path, json=command)).status_code == 401
        assert (await self._as("viv", "POST", path, command)).status_code == 403
        assert (await self._as("ada", "POST", path, command)).json()["outcome"] == "released"
        await self._until_paid("orders", "o-2")
        assert len(await self._booked("charges", "order", "o-2")) == 1
        print(f"a silent provider: {work['why']} Sent twice, booked once")

    async def a_payout_is_reconciled(self) -> None:
        """The money left and no answer came: it must not be sent again before somebody has looked."""
        event = {"id": "evt-4", "shop": self._shop, "payout": "p-1", "cents": fake_provider.SILENT}
        await self._send("payouts", event)
        work = await self._until_waiting()
        assert work["action"] == "reconcile"
        command = {"id": "click-2", "reason": "just send it", "revision": work["revision"]}
        refused = await self._as("ada", "POST", f"/operators/work/{work['work_id']}/retry", command)
        assert (refused.status_code, refused.json()["code"]) == (409, "ASDUR117")
        assert (await self._as("ada", "POST", "/operators/reconciliations")).status_code == 202
        assert (await self._until_paid("payouts", "p-1"))["work_state"] == "succeeded"
        assert len(await self._booked("payouts", "shop", self._shop)) == 1
        print(f"a payout: {work['why']} Looked up, and not sent again")

    async def _send(self, kind: str, event: dict[str, Any]) -> httpx.Response:
        return await send(self._service, kind, event, secret=self._settings.webhook_secret)

    async def _as(
        self, operator: str, method: str, path: str, body: dict[str, Any] | None = None
    ) -> httpx.Response:
        token = {"Authorization": f"Bearer {self._settings.tokens[operator]}"}
        return await self._service.request(method, path, json=body, headers=token)

    async def _until_paid(self, kind: str, number: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while True:
                path = f"/shops/{self._shop}/{kind}/{number}"
                found = (await self._as("viv", "GET", path)).json()
                if (found["state"], found["work_state"]) == ("paid", "succeeded"):
                    return dict(found)
                await asyncio.sleep(0.05)

    async def _until_waiting(self) -> dict[str, Any]:
        path = f"/operators/work?scope={self._shop}"
        async with asyncio.timeout(PATIENCE):
            while not (waiting := (await self._as("ada", "GET", path)).json()):
                await asyncio.sleep(0.05)
        return dict(waiting[0])

    async def _booked(self, kind: str, field: str, value: str) -> list[dict[str, Any]]:
        books = (await self._provider.get("/books")).json()
        return [item for item in books[kind] if item[field] == value]
