"""The Work of this service: what is accepted, what it leads to, and what may be done while nobody knows."""

import os
from dataclasses import dataclass
from datetime import timedelta

from onecommit import App, Safety, WorkRetry

# Without ONECOMMIT_DSN: a PostgreSQL server of its own, gone with its data when the App is closed.
app = App() if "ONECOMMIT_DSN" in os.environ else App.embedded()

SOON = WorkRetry(initial_delay=timedelta(milliseconds=200), max_delay=timedelta(minutes=5))


@dataclass
class Charge:
    order: str
    cents: int


@dataclass
class Charged:
    """The provider's answer. A declined card is an answer too: nothing is left to find out or to repeat."""

    paid: bool
    reference: str


@dataclass
class Payout:
    number: str
    cents: int


@dataclass
class PaidOut:
    transfer: str


# The provider knows our key: a charge that is sent twice is booked once.
charge = app.work(
    "billing.charge",
    version="1",
    payload=Charge,
    result=Charged,
    safety=Safety.PROVIDER_KEYED,
    retry=SOON,
    exits=True,
)

# It takes no key with a transfer: what was sent twice is paid twice. So it is looked up before it is sent again.
payout = app.work(
    "billing.payout",
    version="1",
    payload=Payout,
    result=PaidOut,
    safety=Safety.RECONCILE_BEFORE_RETRY,
    retry=SOON,
)
