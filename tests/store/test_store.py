"""The store: the right one, bounded, and back as soon as the server is."""

import asyncio
import logging
import os
import select
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from psycopg.conninfo import make_conninfo

from onecommit.calls.attempts import claim_jobs
from onecommit.calls.call import Call, Routine, read_scalar
from onecommit.calls.enqueueing import enqueue_jobs
from onecommit.calls.views import get_job, list_queues
from onecommit.calls.work_views import get_scope, get_work
from onecommit.calls.workers import register_worker
from onecommit.domain.settings import StoreSettings
from onecommit.domain.store import SCHEMA_VERSION
from onecommit.domain.worker import WorkerInfo
from onecommit.errors import (
    EpochFenced,
    InvalidArgument,
    OnecommitError,
    SchemaMissing,
    SchemaTooNew,
    SchemaUpgradeRequired,
    StoreMismatch,
    StoreUnavailable,
    UsageError,
)
from onecommit.schema import apply, packaged_bundle
from onecommit.store import identity
from onecommit.store.async_store import AsyncStore
from onecommit.store.sync_store import SyncStore

from tests.clusters import Database
from tests.logins import PASSWORD, Logins
from tests.observe import wait_until_blocked

pytestmark = pytest.mark.pg


def one_job(store: AsyncStore | SyncStore, queue: str = "q"):
    """A call that writes."""
    return enqueue_jobs(queue, kinds='{"k"}', args=["{}"], epoch=store.epoch)


def statement_of(name: str, result: str, body: str) -> str:
    return (
        f"create function onecommit.{name}() returns {result} language plpgsql as $$ {body} $$;"
        f"grant execute on function onecommit.{name}() to public"
    )


def scalar_call(name: str) -> Call:
    return Call(Routine(name, {}, (name,)), (), read_scalar)


async def opened(database: Database, **settings) -> AsyncStore:
    return await AsyncStore(StoreSettings(dsn=database.dsn, **settings)).open()


# --- the right store -----------------------------------------------------------------------------


async def test_a_store_that_fits_is_opened(store: AsyncStore, database: Database):
    with database.connect() as connection:
        row = connection.execute("select * from onecommit.store_status()").fetchone()
    assert (store.store_id, store.epoch) == (row[0], row[2])


async def test_an_adopted_store_is_reported_and_a_configured_one_is_not(database, caplog):
    caplog.set_level(logging.WARNING, logger="onecommit")
    identity._warn_of_adoption.cache_clear()  # databases of one template are the same store
    store = await opened(database)
    assert "ONECOMMIT_EPOCH" in caplog.text
    caplog.clear()
    configured = await opened(database, store_id=store.store_id, epoch=store.epoch)
    assert not caplog.records
    await store.close()
    await configured.close()


async def test_a_login_that_is_not_the_owners_must_say_which_store_it_means(database):
    """Else a cloned database would pass its own check; each of the two alone does not suffice."""
    with database.connect() as owner:
        logins = Logins(database=database, owner=owner, capabilities=("reader",)).create()
        dsn = make_conninfo(database.dsn, user=logins.role("reader"), password=PASSWORD)
        [store_id, epoch] = owner.execute(
            "select store_id, active_epoch from onecommit.store_status()"
        ).fetchone()
        for given in ({}, {"store_id": store_id}, {"epoch": epoch}):
            with pytest.raises(StoreMismatch, match="ONECOMMIT_STORE_ID"):
                await opened(replace(database, dsn=dsn), **given)
        store = await opened(replace(database, dsn=dsn), store_id=store_id, epoch=epoch)
        await store.close()
        logins.drop()


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"store_id": uuid4()}, StoreMismatch), ({"epoch": 1}, EpochFenced)],
    ids=["another store", "another epoch"],
)
async def test_another_store_or_epoch_is_refused(database, settings, error):
    with pytest.raises(error):
        await opened(database, **settings)


async def test_a_store_without_an_epoch_says_how_to_initialise_it(empty_database):
    apply(empty_database.dsn)
    with pytest.raises(EpochFenced, match="onecommit epoch init"):
        await opened(empty_database)


async def test_a_missing_schema_says_how_to_install_it(empty_database):
    with pytest.raises(SchemaMissing, match="onecommit migrate"):
        await opened(empty_database)


@pytest.mark.parametrize(
    ("version", "writer_min", "error"),
    [(1, 1, SchemaUpgradeRequired), (99, 99, SchemaTooNew), (99, 1, None)],
    ids=["too old", "too new", "newer, but still compatible"],
)
async def test_the_installed_version_decides(database, version, writer_min, error):
    with database.connect() as connection:
        connection.execute(
            "alter function onecommit.store_status() rename to installed_status;"
            " create function onecommit.store_status() returns table (store_id uuid, schema_version int,"
            " active_epoch bigint, reader_min int, writer_min int, single_role boolean) language sql as"
            f" 'select store_id, {version}, active_epoch, 1, {writer_min}, single_role from onecommit.installed_status()'"
        )
    if error is None:
        await (await opened(database)).close()
    else:
        with pytest.raises(error):
            await opened(database)


def test_the_version_in_the_code_is_that_of_the_migrations():
    assert packaged_bundle().version == SCHEMA_VERSION


# --- a server that is not there ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"port": "1"}, "nothing listens at its address. Start it"),
        ({"host": "/nowhere"}, "nothing listens at its address. Start it"),
        ({"host": "nowhere.invalid"}, "nobody knows the name of its host"),
        ({"dbname": "no_such_database"}, "has no database of this name. Create it"),
        ({"password": "hunter2"}, "the role or its password is not the right one"),
        ({"user": "stranger"}, "the role or its password is not the right one"),
        ({"user": "pg_monitor", "password": "hunter2"}, "the role or its password"),
    ],
    ids=["port", "socket", "host", "database", "password", "user", "no login"],
)
async def test_a_dsn_that_leads_nowhere_is_a_clear_error(database, change, problem):
    dsn = make_conninfo(database.dsn, **change)
    with pytest.raises(StoreUnavailable, match=problem) as caught:
        await AsyncStore(StoreSettings(dsn=dsn)).open()
    assert [
        value for value in change.values() if len(value) > 1 and value in str(caught.value)
    ] == []


async def test_a_server_without_a_connection_left_says_so(database):
    with database.connect() as admin:
        role = f"few_{database.name}"
        admin.execute(f"create role {role} login password '{PASSWORD}' connection limit 0")
        try:
            dsn = make_conninfo(database.dsn, user=role, password=PASSWORD)
            with pytest.raises(StoreUnavailable, match="no connection left") as caught:
                await AsyncStore(StoreSettings(dsn=dsn)).open()
            assert "max_connections" in str(caught.value)
        finally:
            admin.execute(f"drop role {role}")


@pytest.mark.parametrize(
    ("sqlstate", "problem"),
    [("53100", "disk is full"), ("53200", "SQLSTATE 53200"), ("58030", "SQLSTATE 58030")],
    ids=["disk", "memory", "io"],
)
async def test_what_the_server_could_not_do_is_not_called_a_lost_connection(
    store: AsyncStore, database: Database, sqlstate, problem
):
    with database.connect() as connection:
        body = f"begin raise exception 'no room for %', 'secret' using errcode = '{sqlstate}'; end"
        connection.execute(statement_of("lacking", "text", body))
    with pytest.raises(StoreUnavailable, match=problem) as caught:
        await store.run(scalar_call("lacking"))
    assert "rolled" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert await store.run(list_queues()) == []


async def test_a_server_that_takes_no_writes_is_no_mistake_of_the_caller(database: Database):
    """A standby, or what was the primary: whoever calls may ask again, as when the server is out of reach."""
    with database.connect() as connection:
        connection.execute(f"alter database {database.name} set default_transaction_read_only = on")
    async with AsyncStore(StoreSettings(dsn=database.dsn)) as store:
        with pytest.raises(StoreUnavailable, match="read-only") as refused:
            await store.run(one_job(store))
        assert "name the primary" in refused.value.remedy


async def test_a_host_that_accepts_and_never_answers_is_given_up(database):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"host=127.0.0.1 port={silent.getsockname()[1]} dbname=x"
        settings = StoreSettings(dsn=dsn, connect_timeout=timedelta(seconds=2))
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await AsyncStore(settings).open()
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            SyncStore(settings).open()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A server process that holds its connection and does nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_server_that_stops_answering_is_given_up(store: AsyncStore, database: Database):
    with frozen(store._idle[0].info.backend_pid), pytest.raises(StoreUnavailable):
        await store.run(list_queues(), timeout=timedelta(seconds=0.3))
    assert await store.run(list_queues()) == []


def test_a_sync_caller_is_not_kept_waiting_either(database: Database):
    with SyncStore(StoreSettings(dsn=database.dsn)) as store:
        with frozen(store._idle[0].info.backend_pid), pytest.raises(StoreUnavailable):
            store.run(list_queues(), timeout=timedelta(seconds=0.3))
        assert store.run(list_queues()) == []


async def test_a_call_behind_a_lock_is_cancelled_by_the_server(database: Database):
    store = await opened(database, operation_timeout=timedelta(seconds=0.5))
    with database.connect() as holder, holder.transaction():
        holder.execute("lock table onecommit.ready in access exclusive mode")
        with pytest.raises(StoreUnavailable, match="longer than the operation timeout"):
            await store.run(one_job(store))
    assert (await store.run(one_job(store)))[0].created
    await store.close()


async def test_a_connection_that_died_while_idle_is_replaced(store: AsyncStore, database: Database):
    idle = store._idle[0]
    with database.connect() as killer:
        killer.execute("select pg_terminate_backend(%s)", (idle.info.backend_pid,))
    select.select([idle.pgconn.socket], [], [], 30)
    assert await store.run(list_queues()) == []


# --- how calls run -------------------------------------------------------------------------------


async def test_calls_run_in_read_committed_whatever_the_database_defaults_to(database: Database):
    with database.connect() as connection:
        connection.execute(
            f"alter database {database.name} set default_transaction_isolation = 'serializable'"
        )
        connection.execute(
            statement_of(
                "isolation", "text", "begin return current_setting('transaction_isolation'); end"
            )
        )
    for pooler in (False, True):
        store = await opened(database, transaction_pooler=pooler)
        assert await store.run(scalar_call("isolation")) == "read committed"
        async with store.transaction() as transaction:
            assert await transaction.run(scalar_call("isolation")) == "read committed"
        await store.close()


async def test_behind_a_transaction_pooler_nothing_is_prepared_and_everything_committed(database):
    store = await opened(database, transaction_pooler=True)
    for _ in range(3):
        await store.run(one_job(store))
    (connection,) = store._idle
    prepared = await connection.execute("select count(*) from pg_prepared_statements")
    assert await prepared.fetchone() == (0,)
    await connection.rollback()
    with database.connect() as other:
        assert other.execute("select count(*) from onecommit.ready").fetchone() == (3,)
    await store.close()


async def test_a_conflict_is_tried_again(store: AsyncStore, database: Database):
    flaky = "begin if nextval('turns') < 3 then raise 'again' using errcode = '40001'; end if; return 7; end"
    with database.connect() as connection:
        connection.execute(f"create sequence turns; {statement_of('flaky', 'int', flaky)}")
    assert await store.run(scalar_call("flaky")) == 7


async def test_a_conflict_that_never_ends_is_reported(store: AsyncStore, database: Database):
    hopeless = "begin raise 'again' using errcode = '40P01'; end"
    with database.connect() as connection:
        connection.execute(statement_of("hopeless", "int", hopeless))
    with pytest.raises(StoreUnavailable, match="again and again"):
        await store.run(scalar_call("hopeless"))


async def test_a_transaction_is_kept_whole(store: AsyncStore):
    async def give_up() -> None:
        async with store.transaction() as transaction:
            await transaction.run(one_job(store))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await give_up()
    assert await store.run(list_queues()) == []
    async with store.transaction() as transaction:
        await transaction.run(one_job(store))
        await transaction.run(one_job(store))
    (queue,) = await store.run(list_queues())
    assert queue.ready == 2


async def test_a_refusal_inside_a_transaction_is_ours(store: AsyncStore):
    with pytest.raises(InvalidArgument, match="args"):
        async with store.transaction() as transaction:
            await transaction.run(
                enqueue_jobs("q", kinds='{"k"}', args=["nonsense"], epoch=store.epoch)
            )
    assert await store.run(list_queues()) == []


async def test_an_argument_that_is_no_value_of_its_type_is_refused(store: AsyncStore):
    """Also one that a builder lets through: no id, revision or limit has more than 64 bits, and no text a NUL."""
    number, text = get_work(1), get_scope("a")
    with pytest.raises(InvalidArgument, match="get_work is larger than the store holds"):
        await store.run(replace(number, arguments=(str(2**63),)))
    with pytest.raises(InvalidArgument, match="an argument of get_work is not of its type"):
        await store.run(replace(number, arguments=("None",)))
    with pytest.raises(InvalidArgument, match="a text given to get_scope holds a NUL"):
        await store.run(replace(text, arguments=("a\0b",)))
    assert await store.run(get_work(2**63 - 1)) is None


async def test_another_epochs_call_is_fenced(store: AsyncStore):
    with pytest.raises(EpochFenced):
        await store.run(enqueue_jobs("q", kinds='{"k"}', args=["{}"], epoch=1))


async def test_a_login_without_the_privilege_is_told_so(store: AsyncStore, database: Database):
    role = f"stranger_{database.name}"
    with database.connect() as connection:
        connection.execute(
            f"create role {role} login password 'x'; grant usage on schema onecommit to {role}"
        )
        try:
            stranger = make_conninfo(database.dsn, user=role, password="x")
            with pytest.raises(UsageError, match="may not use store_status"):
                await AsyncStore(StoreSettings(dsn=stranger)).open()
        finally:
            connection.execute(f"drop owned by {role}; drop role {role}")


async def test_a_cancelled_call_leaves_the_store_usable(store: AsyncStore, database: Database):
    with database.connect() as holder, database.connect() as observer, holder.transaction():
        holder.execute("lock table onecommit.ready in access exclusive mode")
        pid = store._idle[0].info.backend_pid
        task = asyncio.create_task(store.run(one_job(store)))
        await asyncio.to_thread(wait_until_blocked, observer, pid)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for _ in range(3):
        assert await store.run(one_job(store))


async def test_more_callers_than_connections_wait_their_turn(store: AsyncStore):
    jobs = await asyncio.gather(*[store.run(one_job(store)) for _ in range(20)])
    assert len({enqueued.job_id for (enqueued,) in jobs}) == 20
    assert len(store._idle) <= 2


async def test_waiting_for_a_connection_is_bounded(database: Database):
    store = await opened(database, max_connections=1)
    async with store.transaction():
        with pytest.raises(StoreUnavailable, match="all 1 connections"):
            await store.run(list_queues(), timeout=timedelta(seconds=0.1))
    await store.close()


def test_threads_share_a_sync_store(database: Database):
    with (
        SyncStore(StoreSettings(dsn=database.dsn, max_connections=2)) as store,
        ThreadPoolExecutor(8) as threads,
    ):
        jobs = list(threads.map(lambda _: store.run(one_job(store)), range(40)))
        assert len({enqueued.job_id for (enqueued,) in jobs}) == 40
        assert len(store._idle) <= 2


async def test_a_closed_store_says_so(database: Database):
    store = await opened(database)
    await store.close()
    with pytest.raises(OnecommitError, match="closed"):
        await store.run(list_queues())


async def test_a_store_that_was_not_opened_says_so(database: Database):
    store = AsyncStore(StoreSettings(dsn=database.dsn))
    with pytest.raises(OnecommitError, match="not open"):
        _ = store.epoch


async def test_a_notice_reaches_the_listener(store: AsyncStore):
    async with store.listen() as listener:
        await store.notify("t123")
        async for payload in listener.notices(timeout=timedelta(seconds=30)):
            assert payload == "t123"
            break


async def test_timestamps_arrive_as_microseconds_only_in_claims(store: AsyncStore, database):
    """The fast reading of created_at agrees with the ordinary one."""
    (enqueued,) = await store.run(one_job(store))
    info = WorkerInfo(host="h", pid=1, version="0", queues=("q",))
    worker = await store.run(register_worker("w", info, epoch=store.epoch))
    claim = claim_jobs(
        "q", worker=worker, request=1, limit=5, lifetime_us=None, sleep=False, epoch=store.epoch
    )
    (attempt,) = (await store.run(claim)).attempts
    job = await store.run(get_job(enqueued.job_id))
    assert attempt.created_at == job.created_at
