"""The payments example as its users run it: in a process of its own, talked to over HTTP."""

import hashlib
import hmac
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.chaos.processes import environment
from tests.clusters import Database

FOLDER = Path(__file__).resolve().parents[2] / "examples"
PATIENCE = 60.0
PAUSE = 0.02
SECRETS = {
    "PAYMENTS_WEBHOOK_SECRET": f"secret-{uuid4().hex}",
    "PAYMENTS_TOKENS": f"ada:{uuid4().hex} viv:{uuid4().hex}",
    "PAYMENTS_PROVIDER_TIMEOUT": "2",
}
TOKENS = dict(pair.split(":") for pair in SECRETS["PAYMENTS_TOKENS"].split())


@dataclass(kw_only=True)
class Service:
    """A running service with its provider, and a shop that nobody else uses."""

    database: Database
    http: httpx.Client
    provider: httpx.Client
    process: subprocess.Popen[str]
    shop: str = field(default_factory=lambda: f"shop-{uuid4().hex[:8]}")

    def send(
        self, kind: str, *, secret: str = SECRETS["PAYMENTS_WEBHOOK_SECRET"], **event: Any
    ) -> httpx.Response:
        """Send a signed event of the shop."""
        body = json.dumps({"shop": self.shop} | event).encode()
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", "X-Shop-Signature": signature}
        return self.http.post(f"/webhooks/{kind}", content=body, headers=headers)

    def order(self, number: str, cents: int, *, event: str | None = None) -> httpx.Response:
        """An order is placed."""
        return self.send("orders", id=event or f"evt-{number}", order=number, cents=cents)

    def payout(self, number: str, cents: int) -> httpx.Response:
        """A payout falls due."""
        return self.send("payouts", id=f"evt-{number}", payout=number, cents=cents)

    def ask(self, who: str | None, method: str, path: str, **body: Any) -> httpx.Response:
        """A request of an operator, or of somebody without a token."""
        headers = {} if who is None else {"Authorization": f"Bearer {TOKENS[who]}"}
        return self.http.request(method, path, json=body or None, headers=headers)

    def command(self, who: str | None, work: dict[str, Any], name: str, **body: Any):
        """A command of an operator about Work as it was seen."""
        given = {"id": f"click-{uuid4().hex}", "reason": "because", "revision": work["revision"]}
        return self.ask(who, "POST", f"/operators/work/{work['work_id']}/{name}", **given | body)

    def reconcile(self) -> None:
        """Start the job, and wait for its end."""
        job = self.ask("ada", "POST", "/operators/reconciliations").json()["job_id"]
        self.until(
            lambda: self.value("select state from onecommit.get_job(%s)", job) == "completed"
        )

    def shown(self, kind: str, number: str) -> dict[str, Any]:
        """An order or a payout as the service shows it."""
        return self.ask("viv", "GET", f"/shops/{self.shop}/{kind}/{number}").json()

    def until_state(self, kind: str, number: str, state: str) -> dict[str, Any]:
        """The row, once its Work stands so."""
        self.until(lambda: self.shown(kind, number)["work_state"] == state)
        return self.shown(kind, number)

    def waiting(self) -> list[dict[str, Any]]:
        """What the shop's operators see."""
        return self.ask("viv", "GET", f"/operators/work?scope={self.shop}").json()

    def until_waiting(self) -> dict[str, Any]:
        """The one item that waits, once it does."""
        self.until(lambda: len(self.waiting()) == 1)
        return self.waiting()[0]

    def booked(self, kind: str, key: str, value: str) -> int:
        """How often the provider has really done it."""
        return sum(item[key] == value for item in self.provider.get("/books").json()[kind])

    def value(self, query: str, *parameters: Any) -> Any:
        """One value from the database."""
        with self.database.connect() as connection:
            row = connection.execute(query, parameters).fetchone()
        return None if row is None else row[0]

    def count(self, table: str) -> int:
        """The shop's rows in a table of the service, or its Work."""
        column = "scope_id" if table == "onecommit.work" else "shop"
        return self.value(f"select count(*) from {table} where {column} = %s", self.shop)

    def until(self, condition: Callable[[], bool]) -> None:
        """Return as soon as the condition is seen to hold."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, "the service has ended"
            assert time.monotonic() < deadline, "it does not come to hold"
            time.sleep(PAUSE)

    def stop(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal; the exit code, and everything that the service has said on standard error."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said


@contextmanager
def running(database: Database) -> Iterator[Service]:
    """The service and its provider on ports that are free."""
    command = ["payments", "--serve", "--port", "0", "--provider-port", "0"]
    with started(*command, env=environment(database) | SECRETS) as process:
        urls = [process.stdout.readline().split()[-1] for _ in range(2)]
        with httpx.Client(base_url=urls[0]) as http, httpx.Client(base_url=urls[1]) as provider:
            yield Service(database=database, http=http, provider=provider, process=process)


@contextmanager
def served_by_uvicorn(database: Database, *, provider_url: str) -> Iterator[Service]:
    """The service as in production, with everything from its environment."""
    env = environment(database) | SECRETS | {"PAYMENTS_PROVIDER_URL": provider_url}
    command = ["uvicorn", "--factory", "payments.service:create", "--port", "0", "--no-access-log"]
    with started(*command, env=env) as process:
        line = next(line for line in process.stderr if "running on" in line)
        url = re.search(r"http://[\d.:]+", line)[0]
        with httpx.Client(base_url=url) as http, httpx.Client(base_url=provider_url) as provider:
            yield Service(database=database, http=http, provider=provider, process=process)


@contextmanager
def started(*module: str, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """``python -m`` in the folder of the examples, killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", *module],
        cwd=FOLDER,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
