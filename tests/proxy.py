"""A TCP proxy before a server that loses replies, cuts connections, or swallows notices, when told to."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

_CHUNK = 65_536


class Proxy:
    """Forwards everything between clients and one server until it is told otherwise."""

    def __init__(self, dsn: str) -> None:
        self._url = urlsplit(dsn)
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._fatal_replies: list[bytes] = []
        self._refusing = False
        self.deaf = False
        """Notices do not pass: what a transaction pooler does to LISTEN."""
        self.lost = asyncio.Event()
        """A reply was lost as asked for."""

    @property
    def dsn(self) -> str:
        """The way to the same database through this proxy."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user, _, _ = self._url.netloc.rpartition("@")
        return urlunsplit(self._url._replace(netloc=f"{user}@127.0.0.1:{port}"))

    def lose_reply(self, containing: bytes) -> None:
        """Cut the connection instead of delivering the next reply that contains these bytes."""
        self.lost.clear()
        self._fatal_replies.append(containing)

    def cut(self) -> None:
        """Cut every connection now."""
        for writer in list(self._writers):
            writer.transport.abort()

    def refuse(self) -> None:
        """Cut every connection and accept none until `accept`."""
        self._refusing = True
        self.cut()

    def accept(self) -> None:
        """Let clients in again."""
        self._refusing = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._welcome, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._links:
            await asyncio.wait(self._links)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            await self._link(reader, writer)
        except OSError:
            pass  # the other side was faster
        finally:
            self._links.discard(task)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection(self._url.hostname, self._url.port)
        self._writers |= {writer, upstream[1]}
        try:
            await asyncio.gather(
                self._pump(reader, upstream[1], replies=False),
                self._pump(upstream[0], writer, replies=True),
            )
        finally:
            for side in (writer, upstream[1]):
                self._writers.discard(side)
                side.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, replies: bool
    ) -> None:
        while data := await source.read(_CHUNK):
            if replies and self._is_fatal(data):
                raise ConnectionResetError
            if replies and self.deaf and data[:1] == b"A":
                continue
            target.write(data)
            await target.drain()
        raise ConnectionResetError

    def _is_fatal(self, data: bytes) -> bool:
        for pattern in self._fatal_replies:
            if pattern in data:
                self._fatal_replies.remove(pattern)
                self.lost.set()
                return True
        return False
