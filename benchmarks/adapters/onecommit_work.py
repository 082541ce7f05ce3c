"""Work of Onecommit through its public API, as logins for which row-level security holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from benchmarks.adapters.contract import Handled, Look
from benchmarks.adapters.onecommit_stored import fill
from benchmarks.adapters.psycopg_client import connect, scalar
from onecommit import App, Safety, Work, WorkInvocation, schema

_CONCURRENCY = 100
_CONTRACT = "bench.noop"
_CONTRACTS = 10
"""Contracts that a look is for."""
_DEFAULT_LOOK = 2 * 5 * _CONTRACTS + 8
"""What a worker asks for with five free slots for each contract."""
_LARGEST_LOOK = 1_000
_LOOK = "select * from onecommit.discover_work_dispatch(%s, %s, %s)"
_PASSWORD = "only-for-benchmarks"
_OWNER, _ACCEPTOR, _WORKER = "bench_owner", "bench_acceptor", "bench_worker"
_CAPABILITIES = {
    _ACCEPTOR: ["work_acceptor"],
    _WORKER: ["executor", "maintenance", "work_dispatcher", "work_runtime"],
}
# Both by index: of what is stored beside, nothing is due within an hour.
_OPEN = """
    select (select count(*) from onecommit.dispatch
            where contract_name = 'bench.noop' and contract_version = '1' and state in ('available', 'leased')
              and discover_at < now() + interval '1 hour')
         + (select count(*) from onecommit.dispatch where state = 'suspended')
"""


class OnecommitAcceptor:
    """Accepts through the registered Work, on connections of the App."""

    def __init__(self, noop: Work[dict[str, int], None], scopes: int) -> None:
        self._noop = noop
        self._scopes = scopes

    async def accept(self, number: int) -> None:
        await self._noop.accept(
            {"n": number},
            scope=f"scope-{number % self._scopes}",
            command_id=f"command-{number}",
            idempotency_key=f"event-{number}",
        )


class OnecommitWork:
    """Each item: accepted, claimed, permitted, admitted, completed, with its history."""

    name = "onecommit"
    distribution = "onecommit"
    settings = f"Work of class PROVIDER_KEYED, {_CONCURRENCY} items at a time, else defaults"

    async def setup(self, dsn: str) -> None:
        async with await AsyncConnection.connect(dsn, autocommit=True) as admin:
            for role in (_OWNER, *_CAPABILITIES):
                await _ensure_login(admin, role)
            await admin.execute(
                sql.SQL("grant create on database {} to {}").format(
                    sql.Identifier(admin.info.dbname), sql.Identifier(_OWNER)
                )
            )
            owner = login(dsn, _OWNER)
            await asyncio.to_thread(schema.apply, owner)
            await asyncio.to_thread(
                schema.ensure_epoch, owner, actor="benchmarks", reason="fresh store"
            )
            await admin.execute(schema.grants(_CAPABILITIES).encode())

    @asynccontextmanager
    async def acceptor(
        self, dsn: str, *, connections: int, scopes: int
    ) -> AsyncIterator[OnecommitAcceptor]:
        identity = await _identity(dsn)
        async with App(login(dsn, _ACCEPTOR), max_connections=connections, **identity) as app:
            yield OnecommitAcceptor(_register(app, lambda _: None), scopes)

    async def work(self, dsn: str, handled: Handled) -> None:
        app = App(login(dsn, _WORKER), **await _identity(dsn))
        _register(app, handled)
        async with app.worker(work={_CONTRACT: _CONCURRENCY}) as worker:
            await worker.run()

    async def open_jobs(self, dsn: str) -> int:
        return await scalar(dsn, _OPEN)

    async def store(self, dsn: str, *, first: int, count: int, scopes: int, waiting: float) -> None:
        await fill(
            dsn, contract=_CONTRACT, first=first, count=count, scopes=scopes, waiting=waiting
        )

    async def store_due(self, dsn: str, *, count: int, scopes: int) -> None:
        await fill(
            dsn,
            contract=_CONTRACT,
            contracts=_CONTRACTS,
            first=0,
            count=count,
            scopes=scopes,
            waiting=0.99,
            due=0.01,
        )

    @asynccontextmanager
    async def looks(self, dsn: str, *, largest: bool) -> AsyncIterator[Look]:
        names = [f"{_CONTRACT}-{number}" for number in range(_CONTRACTS)]
        limit = _LARGEST_LOOK if largest else _DEFAULT_LOOK
        async with await connect(login(dsn, _WORKER)) as connection:

            async def look() -> int:
                cursor = await connection.execute(
                    _LOOK, (names, ["1"] * _CONTRACTS, limit), binary=True
                )
                return len(await cursor.fetchall())

            yield look


async def _identity(dsn: str) -> dict[str, Any]:
    """Return the store and the epoch, which a login of one capability must be told."""
    async with await AsyncConnection.connect(dsn) as admin:
        cursor = await admin.execute(
            "select store_id, active_epoch as epoch from onecommit.store_status()"
        )
        [row] = await cursor.fetchall()
    return {"store_id": row[0], "epoch": row[1]}


def login(dsn: str, role: str) -> str:
    """Return the connection string of one of our logins."""
    return make_conninfo(dsn, user=role, password=_PASSWORD)


async def _ensure_login(admin: AsyncConnection[Any], role: str) -> None:
    cursor = await admin.execute("select 1 from pg_roles where rolname = %s", (role,))
    if await cursor.fetchone() is None:
        await admin.execute(
            sql.SQL("create role {} login password {}").format(sql.Identifier(role), _PASSWORD)
        )


def _register(app: App, handled: Handled) -> Work[dict[str, int], None]:
    noop: Work[dict[str, int], None] = app.work(
        _CONTRACT,
        version="1",
        payload=dict[str, int],
        result=type(None),
        safety=Safety.PROVIDER_KEYED,
    )

    @noop.executor
    async def run(invocation: WorkInvocation, payload: dict[str, int]) -> None:
        handled(payload["n"])

    return noop


ADAPTER = OnecommitWork()
