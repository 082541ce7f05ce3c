"""A small HTTP server in a thread of its own, which a blocked event loop cannot stop."""

import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from threading import Thread
from typing import Any, NamedTuple

from onecommit.errors import UsageError

_REQUEST_SECONDS = 5.0
"""How long a client may take to send its request, or to take the answer."""
_STOP_SECONDS = 0.1


class Answer(NamedTuple):
    """What a path answers."""

    content_type: str
    body: bytes
    status: HTTPStatus = HTTPStatus.OK


Answers = Mapping[str, Callable[[str], Answer]]
"""By path; the function gets the ``Accept`` header."""


class ProbeServer:
    """Answers GET and HEAD for a few fixed paths; listens from the beginning, answers from `start` on.

    Raises:
        UsageError: Nothing can listen at this address.
    """

    def __init__(
        self, host: str, port: int, *, answers: Answers, on_error: Callable[[Exception], None]
    ) -> None:
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self._server = _Server(family, address, _handler(answers, on_error))
        except OSError as error:
            raise UsageError(
                f"the metrics cannot be served at port {port} of {host!r}: {error.strerror}",
                remedy="Choose another port or host, or end what uses it.",
            ) from error
        self._thread = Thread(
            target=self._server.serve_forever,
            args=(_STOP_SECONDS,),
            name="onecommit-probes",
            daemon=True,
        )

    @property
    def port(self) -> int:
        """The port, also if any free one was asked for."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End; blocks for a tenth of a second at most."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingMixIn, TCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(
        self, family: int, address: Any, handler: Callable[[Any, Any, Any], BaseRequestHandler]
    ) -> None:
        self.address_family = family
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nobody's business; what our own code raises is reported before."""


def _handler(answers: Answers, on_error: Callable[[Exception], None]) -> type[BaseRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            answer = self._answer()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_HEAD = do_GET  # noqa: N815 - the name that the base class looks for

        def version_string(self) -> str:
            return "onecommit"

        def log_message(self, *_: object) -> None:
            """A line for each scrape would drown the rest."""

        def _answer(self) -> Answer:
            answer = answers.get(self.path.partition("?")[0])
            if answer is None:
                paths = " ".join(answers)
                return _text(HTTPStatus.NOT_FOUND, f"there are {paths}\n")
            try:
                return answer(self.headers.get("Accept", ""))
            except Exception as error:  # noqa: BLE001 - reported; the next request may fare better
                on_error(error)
                return _text(HTTPStatus.INTERNAL_SERVER_ERROR, "an error was logged\n")

    return Handler


def _text(status: HTTPStatus, text: str) -> Answer:
    return Answer("text/plain; charset=utf-8", text.encode(), status)
