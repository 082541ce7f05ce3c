"""A job's follow-ups are committed with the transition that they follow; observers hear of it afterwards."""

import asyncio
import os
from collections import Counter
from datetime import timedelta

from onecommit import App, Complete, FollowUp, JobContext, JobTransition, Retry
from onecommit.telemetry.events import AttemptEnded

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

sent: list[str] = []
ended: Counter[str] = Counter()


@app.job(queue="mail")
async def send_mail(ctx: JobContext, to: str, about: str) -> None:
    """Stands for a mail."""
    sent.append(f"{about} to {to}")


@app.job(queue="orders", max_attempts=2, retry=Retry(first=timedelta(0)))
async def ship(ctx: JobContext, order: int, address: str) -> Complete | dict[str, str]:
    """Some orders cannot be shipped, some are shipped in two parcels."""
    if not address:
        raise ValueError("no address")
    if order == 2:
        second = send_mail.follow_up(to="depot", about=f"second parcel of {order}")
        return Complete({"carrier": "van"}, follow_ups=[second])
    return {"carrier": "bike"}


@ship.on_completed
def tell_customer(shipped: JobTransition) -> FollowUp:
    """Runs when the handler has returned, before anything is written."""
    about = f"order {shipped.arguments['order']} by {shipped.result['carrier']}"
    return send_mail.follow_up(to=shipped.arguments["address"], about=about)


@ship.on_exhausted
def tell_support(failed: JobTransition) -> FollowUp | None:
    """The job is in the dead letters, and so is the reason."""
    if failed.code == "discarded":
        return None
    return send_mail.options(priority=1).follow_up(
        to="support", about=f"order {failed.arguments['order']} after {failed.attempt} attempts"
    )


@app.on(AttemptEnded)
def count(event: AttemptEnded) -> None:
    """After the commit, in a thread of its own: for metrics, never for work that must happen."""
    if event.kind == "ship":
        ended[event.name] += 1


async def main() -> None:
    """Ship three orders; then read the mails."""
    async with app:
        for order, address in ((1, "Ada"), (2, "Grace"), (3, "")):
            await ship.enqueue(order=order, address=address)
        async with app.worker(queues={"orders": 5, "mail": 5}) as worker:
            await worker.drain()
            await worker.drain()  # what the last jobs brought
    assert sorted(sent) == [
        "order 1 by bike to Ada",
        "order 2 by van to Grace",
        "order 3 after 2 attempts to support",
        "second parcel of 2 to depot",
    ]
    assert ended == {"attempt.completed": 2, "attempt.retried": 1, "attempt.exhausted": 1}
    print("ok: each order brought its mails, once")


if __name__ == "__main__":
    asyncio.run(main())
