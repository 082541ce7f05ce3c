"""Every method that reaches the store refuses a bad argument by its name, writes nothing, and the next call works."""

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from onecommit import App, InvalidArgument, JobContext, NotApplied, OnecommitError, Safety

from tests import bad_calls
from tests.clusters import Cluster
from tests.nonsense import (
    NO_DURATION,
    NO_FLAG,
    NO_IDS,
    NO_LIMIT,
    NO_NAME,
    NO_NUMBER,
    NO_TEXT,
    NO_TIME,
    SECRET,
    shown,
)
from tests.strict import StrictDatabase, strict_database
from tests.waiting_work import define, suspend

pytestmark = pytest.mark.pg

NO_WHO = (None, "", " ", *NO_TEXT)
WHO = {"actor": "ada", "reason": "a test"}
NOT_WHO = {"actor": NO_WHO, "reason": NO_WHO}
NOT_COMMAND = {"command_id": (*NO_NAME, "a b"), **NOT_WHO}
PAGE = {"limit": NO_LIMIT, "before": NO_NUMBER}


@dataclass(frozen=True)
class Method:
    """A method with arguments that are right, and those that are wrong for each of them."""

    path: str
    right: dict[str, Any] = field(repr=False)
    wrong: dict[str, tuple[Any, ...]] = field(repr=False)

    def bad(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One wrong argument at a time."""
        for name, values in self.wrong.items():
            for value in values:
                yield name, self.right | {name: value}


JOBS = [
    Method("jobs.get", {"job_id": 1}, {"job_id": (None, *NO_NUMBER)}),
    Method(
        "jobs.list",
        {},
        {"state": ("lost", "", *NO_TEXT), "queue": NO_TEXT, "kind": NO_TEXT, **PAGE},
    ),
    Method("jobs.cancel", {"job_id": 10**9, **WHO}, {"job_id": (None, *NO_NUMBER), **NOT_WHO}),
    Method("jobs.cancel_many", {"job_ids": [10**9], **WHO}, {"job_ids": NO_IDS, **NOT_WHO}),
    Method(
        "jobs.cancel_all",
        {"queue": "email", **WHO},
        {
            "queue": NO_TEXT,
            "kind": NO_TEXT,
            "tags": (5, "x", b"x", [5], [None], [f"{SECRET}\0"], [f"{SECRET}\ud800"]),
            "states": (5, "ready", b"x", [], ["lost"], ["completed"], [5], [None], [[]]),
            "limit": (*NO_LIMIT, 10_001),
            "preview": NO_FLAG,
            **NOT_WHO,
        },
    ),
    Method("dead_letters.list", {}, {"queue": NO_TEXT, "kind": NO_TEXT, **PAGE}),
    Method("dead_letters.retry", {"job_ids": [10**9], **WHO}, {"job_ids": NO_IDS, **NOT_WHO}),
    Method("dead_letters.purge", {"job_ids": [10**9], **WHO}, {"job_ids": NO_IDS, **NOT_WHO}),
    Method("callbacks.list", {}, {"job_id": NO_NUMBER, "queue": NO_TEXT, "kind": NO_TEXT, **PAGE}),
    *(
        Method(f"queues.{name}", {"queue": "email", **WHO}, {"queue": (None, *NO_TEXT), **NOT_WHO})
        for name in ("pause", "resume", "disable_caller_owned", "allow_caller_owned")
    ),
]
COMMAND = {"work_id": 1, "command_id": "c", **WHO}
NOT_OF_WORK = {"work_id": (None, *NO_NUMBER), "scope": (*NO_TEXT, "a b"), **NOT_COMMAND}
WORKS = [
    Method("works.get", {"work_id": 1}, {"work_id": (None, *NO_NUMBER)}),
    Method("works.events", {"work_id": 1}, {"work_id": (None, *NO_NUMBER)}),
    Method("works.permits", {"work_id": 1}, {"work_id": (None, *NO_NUMBER)}),
    Method(
        "works.list",
        {},
        {
            "scope": NO_TEXT,
            "states": (5, "pending", b"x", ["lost"], [5], [None], [[]]),
            "needs_operator": NO_FLAG,
            "contract": NO_TEXT,
            **PAGE,
        },
    ),
    Method(
        "works.counts_by_contract",
        {},
        {"scope": NO_TEXT, "contract": NO_TEXT, "by_scope": NO_FLAG, "limit": NO_LIMIT},
    ),
    Method("works.cancel", COMMAND, NOT_OF_WORK),
    Method("works.reconcile", COMMAND, {"lease": (None, *NO_DURATION), **NOT_OF_WORK}),
    Method(
        "works.resolve",
        {"evidence": NotApplied(), "revision": 1, **COMMAND},
        {
            "revision": (None, *NO_NUMBER),
            "proof_sha256": (5, "x", b"short", bytearray(32), [1]),
            **NOT_OF_WORK,
        },
    ),
    *(
        Method(
            f"works.{name}",
            {"revision": 1, **COMMAND},
            {"revision": (None, *NO_NUMBER), **NOT_OF_WORK},
        )
        for name in ("retry_safe", "release")
    ),
    Method(
        "works.release_all",
        {"scope": "tenant", "command_id": "c", **WHO},
        {
            "scope": (*NO_NAME, "a b"),
            "contract": NO_TEXT,
            "version": NO_TEXT,
            "limit": NO_LIMIT,
            "preview": NO_FLAG,
            **NOT_COMMAND,
        },
    ),
    Method(
        "works.purge",
        {"before": datetime.now(UTC) - timedelta(days=1), **WHO},
        {"before": NO_TIME, "limit": NO_LIMIT, **NOT_WHO},
    ),
    Method("scopes.get", {"scope": "tenant"}, {"scope": (None, *NO_TEXT)}),
    Method(
        "scopes.disable",
        {"scope": "tenant", "generation": 1, "command_id": "c", **WHO},
        {"scope": (*NO_NAME, "a b"), "generation": (None, *NO_NUMBER), **NOT_COMMAND},
    ),
]


def test_no_method_is_left_out():
    """Whatever takes an argument stands in a table here, or in `tests.bad_calls`."""
    app = App("host=127.0.0.1")
    clients = [name for name, value in vars(app).items() if is_client(value)]
    assert {"jobs", "queues", "callbacks", "works"} <= set(clients)
    taking = {
        f"{client}.{name}"
        for client in clients
        for name, method in inspect.getmembers(getattr(app, client), inspect.ismethod)
        if not name.startswith("_") and inspect.signature(method).parameters
    }
    elsewhere = {f"callbacks.{name}" for name in ("resume", "complete", "fail", "retry", "in_tx")}
    assert taking - elsewhere == {method.path for method in (*JOBS, *WORKS)}


def is_client(value: object) -> bool:
    """Whether it is a part of the App that reaches the store."""
    return any(kind.__module__.startswith("onecommit.app.async_") for kind in type(value).__mro__)


@pytest.fixture(scope="module")
def database(postgres: Cluster) -> Iterator[StrictDatabase]:
    """One strict store for the module: nothing is to be written."""
    with strict_database(postgres) as fresh:
        yield fresh


class Bad:
    """Calls that must be refused, on one store."""

    def __init__(self, database: StrictDatabase, app: App) -> None:
        self._database = database
        self.app = app
        self.faults: list[str] = []

    async def each(self, client: Any, method: Method) -> None:
        """Try every wrong argument, then the right ones."""
        call = client
        for part in method.path.split("."):
            call = getattr(call, part)
        before = self.everything()
        for name, arguments in method.bad():
            await self._refused(call, name, arguments)
        assert self.everything() == before
        assert not self.faults, "\n".join(self.faults)
        try:
            await answer(call, method.right)
        except InvalidArgument as error:
            pytest.fail(f"the right arguments were refused: {error}")
        except OnecommitError:
            pass  # there is nothing to do it to

    async def _refused(self, call: Any, name: str, arguments: dict[str, Any]) -> None:
        said = f"{call.__qualname__}({name}={shown(arguments[name])}): "
        try:
            await answer(call, arguments)
        except InvalidArgument as error:
            if name not in (error.field or ""):
                self.faults.append(f"{said}names {error.field}: {error}")
            if SECRET in str(error):
                self.faults.append(f"{said}says the value")
        except BaseException as error:  # noqa: BLE001 - whatever else it is, it is wrong
            self.faults.append(f"{said}{type(error).__qualname__}: {str(error)[:200]}")
        else:
            self.faults.append(f"{said}accepted")
        assert await self.app.jobs.get(10**9) is None

    def everything(self) -> dict[str, str]:
        with self._database.connect() as admin:
            names = admin.execute(
                "select relname from pg_class where relkind = 'r' and relnamespace = 'onecommit'::regnamespace"
            ).fetchall()
            return {
                name: admin.execute(
                    f"select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from onecommit.\"{name}\" t"
                ).fetchone()[0]
                for (name,) in names
            }


async def answer(call: Any, arguments: dict[str, Any]) -> Any:
    """Of an async method, or of a sync one in a thread."""
    if inspect.iscoroutinefunction(call):
        return await call(**arguments)
    return await asyncio.to_thread(call, **arguments)


@pytest.fixture
async def bad(database: StrictDatabase, app: App) -> Bad:
    # It gets texts, whatever was given.
    app.authorize(lambda action: isinstance(action.actor + action.reason, str))

    @app.job(queue="email")
    async def send(ctx: JobContext, to: str) -> None: ...

    await send.enqueue(to="a")
    return Bad(database, app)


@pytest.fixture(params=["async", "sync"])
def client(request: pytest.FixtureRequest, app: App) -> Any:
    return app if request.param == "async" else app.sync


@pytest.mark.parametrize("method", JOBS, ids=lambda method: method.path)
async def test_jobs_and_queues(bad: Bad, client: Any, method: Method):
    await bad.each(client, method)


async def test_producers_acceptors_and_callbacks(bad: Bad, client: Any):
    """On connections of the App; the next call of each works."""
    job, work = bad_calls.count_job(bad.app), bad_calls.charge_work(bad.app)
    producer, acceptor = (job, work) if client is bad.app else (job.sync, work.sync)
    before = bad.everything()
    faults = [
        *await bad_calls.faults_of(bad_calls.of_producer(producer)),
        *await bad_calls.faults_of(bad_calls.of_acceptor(acceptor)),
        *await bad_calls.faults_of(bad_calls.of_callbacks(client.callbacks)),
    ]
    assert not faults, "\n".join(faults)
    assert bad.everything() == before
    assert (await bad_calls.answer(partial(producer.enqueue, n=1))).created
    assert (
        await bad_calls.answer(partial(acceptor.accept, {"a": 1}, **bad_calls.IDENTITY))
    ).work_id


@pytest.mark.parametrize("method", WORKS, ids=lambda method: method.path)
async def test_work_and_scopes(bad: Bad, client: Any, method: Method):
    work = define(bad.app, Safety.MANUAL_RESOLUTION)
    work.reconciler(lambda *_: NotApplied())
    view = await suspend(bad.app, work)
    own = {"work_id": view.work_id} if "work_id" in method.right else {}
    await bad.each(client, Method(method.path, method.right | own, method.wrong))
