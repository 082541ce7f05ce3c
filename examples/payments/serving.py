"""Web applications on ports of this machine, for as long as a block lasts."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import uvicorn
from fastapi import FastAPI


class Server(uvicorn.Server):
    """A server that leaves signals to the program: several of them live in one process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Change no signal handler."""
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Return where uvicorn would end the program, because the application did not start."""
        with suppress(SystemExit):
            await super().serve(sockets)


class NotStarted(Exception):
    """A web application cannot be served; what it said about that stands above."""


@asynccontextmanager
async def serving(web: FastAPI, *, port: int = 0) -> AsyncIterator[str]:
    """Serve until the block ends, and give the URL; port 0 is any that is free."""
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise NotStarted(f"port {port} of {web.title} is taken: choose another one") from error
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = Server(uvicorn.Config(web, lifespan="on", log_level="warning"))
    task = asyncio.create_task(server.serve([listener]))
    try:
        while not server.started:
            if task.done():
                raise NotStarted(f"{web.title} did not start: see the lines above")
            await asyncio.sleep(0.01)
        yield url
    finally:
        server.should_exit = True
        await task
        listener.close()
