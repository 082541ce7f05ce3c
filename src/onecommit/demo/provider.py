"""`python -m onecommit.demo.provider JOURNAL`: a provider over HTTP that does not always answer.

It prints its port, and ends when its standard input does, so it does not outlive whoever started it.
"""

import json
import sys
import threading
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from onecommit.demo.journal import Journal, Operation

KEY = "Idempotency-Key"
UNSURE = 7
"""The order whose transfer cannot be looked up today."""


class Fate(StrEnum):
    """What becomes of a call."""

    ANSWERED = "answered"
    DONE_UNANSWERED = "done, never answered"
    LOST = "neither done nor answered"


def fate_of(order: int, *, repeated: bool) -> Fate:
    """A quarter of the orders is done without an answer, a quarter is lost; a repeated call is answered."""
    if repeated:
        return Fate.ANSWERED
    return {3: Fate.DONE_UNANSWERED, 0: Fate.LOST}.get(order % 4, Fate.ANSWERED)


class Provider(ThreadingHTTPServer):
    """Every operation, one call at a time; a silent one waits in a thread of its own."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, journal: Journal) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._journal = journal
        self._lock = threading.Lock()

    def call(
        self, operation: Operation, *, key: str, order: int, cents: int
    ) -> tuple[Fate, str | None]:
        """Do it, or not."""
        with self._lock:
            fate = fate_of(order, repeated=self._journal.knows(key))
            receipt = self._journal.record(
                operation,
                key=key,
                order=order,
                cents=cents,
                applies=fate is not Fate.LOST,
                answers=fate is Fate.ANSWERED,
            )
        return fate, receipt

    def look(self, key: str) -> str | None:
        """The receipt of what was done under a key; None: nothing was, and nothing will be."""
        with self._lock:
            return self._journal.receipt(key)


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        """`POST /charge` and the others: do it, or not."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fate, receipt = self.server.call(
            Operation(self.path.removeprefix("/")),
            key=self.headers[KEY],
            order=body["number"],
            cents=body["cents"],
        )
        if fate is Fate.ANSWERED:
            self._answer(HTTPStatus.OK, {"receipt": receipt})
        else:
            self.close_connection = True
            self.rfile.read(1)  # until the caller gives up, or is gone

    def do_GET(self) -> None:
        """`GET /transfer/7`: what became of the transfer of an order."""
        if self.path == f"/{Operation.TRANSFER}/{UNSURE}":
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {})
            return
        receipt = self.server.look(self.headers[KEY])
        status = HTTPStatus.NOT_FOUND if receipt is None else HTTPStatus.OK
        self._answer(status, {"receipt": receipt})

    def log_message(self, *_: Any) -> None:
        """The journal says it."""

    def _answer(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main(path: Path) -> None:
    """Serve until standard input ends."""
    provider = Provider(Journal(path))
    threading.Thread(target=partial(provider.serve_forever, poll_interval=0.1), daemon=True).start()
    print(provider.server_port, flush=True)  # noqa: T201 - whoever started it reads the port
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
