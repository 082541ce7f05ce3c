"""Owners, waiters and the application beside a migration, by observed lock waits."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import psycopg
import pytest

from onecommit import errors
from onecommit.schema import Patience, SchemaState, apply, status
from onecommit.schema.lock import Holder, SessionLock, busy, migration_lock, schema_lock
from onecommit.schema.session import owner_session

from tests.schema.bundles import INVOICE, TOTAL
from tests.schema.observation import (
    advisory_locks,
    catalog,
    gone,
    in_background,
    waiting_pid,
)

pytestmark = pytest.mark.pg

BRISK = Patience(attempt=timedelta(milliseconds=200), table_attempt=timedelta(milliseconds=200))
STUBBORN = Patience(attempt=timedelta(seconds=60), table_attempt=timedelta(seconds=60))
HURRIED = Patience(
    attempt=timedelta(milliseconds=50),
    table_attempt=timedelta(milliseconds=50),
    total=timedelta(milliseconds=150),
)


@contextmanager
def another_owner(dsn: str) -> Iterator[int]:
    """A session that holds the migration lock; gives its pid."""
    with owner_session(dsn, schema="onecommit", patience=STUBBORN) as connection:
        yield connection.info.backend_pid


@contextmanager
def mutation_in_flight(dsn: str) -> Iterator[psycopg.Connection]:
    """An application's transaction that holds the schema lock as every mutation does."""
    with psycopg.connect(dsn, application_name="the application") as connection:
        mutate(connection)
        yield connection


def mutate(connection: psycopg.Connection) -> None:
    """Take the schema lock in the shared form, until the transaction ends."""
    lock = schema_lock(connection, "onecommit")
    assert lock is not None
    connection.execute("select pg_advisory_xact_lock_shared(%s::int, %s::int)", lock.key)


def test_the_schema_lock_is_the_one_that_the_functions_take(dsn, admin):
    """The key computed here is what schema_lock_class() answers."""
    apply(dsn)
    lock = schema_lock(admin, "onecommit")
    assert lock is not None
    assert lock.key == (admin.execute("select onecommit.schema_lock_class()").fetchone()[0], 0)


@pytest.mark.parametrize("key", [(-5,), (2**63 - 1,), (-7, 3), (2**31 - 1, 0)])
def test_a_lock_of_any_key_is_found_in_pg_locks(admin, dsn, key):
    """Signed keys are shown unsigned; the look-up finds them for this session and for others."""
    lock = SessionLock(name="test lock", key=key)
    lock.acquire(admin, STUBBORN)
    assert lock.is_held(admin)
    assert lock.holders(admin) == []
    with psycopg.connect(dsn) as other:
        assert not lock.is_held(other)
        assert [holder.pid for holder in lock.holders(other)] == [admin.info.backend_pid]
    lock.release(admin)
    assert not lock.is_held(admin)


def test_two_schemas_of_one_database_have_different_migration_locks():
    """Their owners do not wait for each other."""
    assert migration_lock("a") != migration_lock("b")


def test_a_second_owner_waits_for_the_first(dsn, admin, write_bundle):
    """The wait is seen in the server, and nothing is created during it."""
    bundle = write_bundle(INVOICE)
    with ExitStack() as first:
        owner = first.enter_context(another_owner(dsn))
        with in_background(lambda: apply(dsn, bundle=bundle, patience=STUBBORN)) as second:
            assert waiting_pid(admin, "advisory", blocked_by=owner)
            assert status(dsn, bundle=bundle).state is SchemaState.MISSING
            first.close()
            assert second.result(30).applied_versions == (1, 2)


def test_owners_that_start_together_apply_once(dsn, write_bundle):
    """Of several first migrations at once exactly one does the work and all end compatible."""
    bundle = write_bundle(INVOICE, TOTAL)
    with (
        in_background(lambda: apply(dsn, bundle=bundle)) as a,
        in_background(lambda: apply(dsn, bundle=bundle)) as b,
        in_background(lambda: apply(dsn, bundle=bundle)) as c,
    ):
        reports = [future.result(60) for future in (a, b, c)]
    assert sorted(report.applied_versions for report in reports) == [(), (), (1, 2, 3)]
    assert len({report.store_id for report in reports}) == 1


def test_giving_up_names_the_blocking_session_and_no_query(dsn):
    """The error carries pids and application names, says what to do, and comes within the wait."""
    with another_owner(dsn) as owner, pytest.raises(errors.SchemaBusy) as raised:
        apply(dsn, patience=HURRIED)
    assert raised.value.blocking_pids == (owner,)
    assert f"pid {owner} (onecommit schema)" in str(raised.value)
    assert "select" not in str(raised.value).lower()
    assert raised.value.remedy


def test_a_prepared_transaction_is_named_as_the_holder():
    """It has no pid and may hold the schema lock for ever, so the error must not hide it."""
    error = busy("schema lock", [Holder(pid=None, application_name="")])
    assert "held by a prepared transaction" in str(error)
    assert error.blocking_pids == ()


def test_a_cancelled_waiter_leaks_no_lock(dsn, admin):
    """After pg_cancel_backend its session is gone, and nothing of its wait or lock is left."""
    with (
        another_owner(dsn) as owner,
        in_background(lambda: apply(dsn, patience=STUBBORN)) as waiter,
    ):
        pid = waiting_pid(admin, "advisory", blocked_by=owner)
        admin.execute("select pg_cancel_backend(%s)", (pid,))
        with pytest.raises(errors.SchemaError, match="cancelled"):
            waiter.result(30)
        gone(admin, pid)
        assert advisory_locks(admin) == [owner]
    gone(admin, owner)
    assert advisory_locks(admin) == []
    assert status(dsn).state is SchemaState.MISSING


def test_a_terminated_waiter_can_try_again(dsn, admin, write_bundle):
    """A new session starts from scratch and succeeds."""
    bundle = write_bundle(INVOICE)
    with (
        another_owner(dsn) as owner,
        in_background(lambda: apply(dsn, patience=STUBBORN)) as waiter,
    ):
        pid = waiting_pid(admin, "advisory", blocked_by=owner)
        admin.execute("select pg_terminate_backend(%s)", (pid,))
        with pytest.raises(errors.StoreUnavailable, match="lost"):
            waiter.result(30)
    assert apply(dsn, bundle=bundle).applied_versions == (1, 2)


def test_a_migration_terminated_half_way_can_be_run_again(dsn, admin, write_bundle):
    """The unfinished step is rolled back with its session, the lock is free, the finished steps stay."""
    apply(dsn, bundle=write_bundle(INVOICE))
    newer = write_bundle(INVOICE, 'create table "@schema@".extra ();\n', TOTAL)
    with (
        psycopg.connect(dsn) as reader,
        in_background(lambda: apply(dsn, bundle=newer, patience=STUBBORN)) as owner,
    ):
        reader.execute("select from onecommit.invoice")
        admin.execute("select from onecommit.invoice")
        pid = waiting_pid(admin, "relation", blocked_by=reader.info.backend_pid)
        admin.execute("select pg_terminate_backend(%s)", (pid,))
        with pytest.raises(errors.StoreUnavailable):
            owner.result(30)
    assert advisory_locks(admin) == []
    assert status(dsn, bundle=newer).installed_version == 3
    assert apply(dsn, bundle=newer).applied_versions == (4,)


def test_a_migration_waits_for_a_mutation_in_flight(dsn, admin, write_bundle):
    """Nothing changes under a transaction that has begun to write."""
    apply(dsn, bundle=write_bundle(INVOICE))
    newer = write_bundle(INVOICE, TOTAL)
    with (
        mutation_in_flight(dsn) as mutation,
        in_background(lambda: apply(dsn, bundle=newer, patience=STUBBORN)) as owner,
    ):
        before = catalog(admin)
        assert waiting_pid(admin, "advisory", blocked_by=mutation.info.backend_pid)
        assert catalog(admin) == before
        mutation.commit()
    assert owner.result(0).applied_versions == (3,)


def test_mutations_go_on_while_a_migration_waits_for_one_of_them(dsn, admin, write_bundle):
    """A migration queues for one attempt only; behind it a new mutation waits no longer than that."""
    apply(dsn, bundle=write_bundle(INVOICE))
    newer = write_bundle(INVOICE, TOTAL)
    with (
        mutation_in_flight(dsn) as slow,
        in_background(lambda: apply(dsn, bundle=newer, patience=BRISK)) as owner,
    ):
        assert waiting_pid(admin, "advisory", blocked_by=slow.info.backend_pid)
        with psycopg.connect(dsn) as quick:
            quick.execute("set lock_timeout = '20s'")
            mutate(quick)
        assert not owner.done()
        slow.commit()
    assert owner.result(0).applied_versions == (3,)


def test_a_long_reader_makes_the_migration_wait_but_not_the_application(dsn, admin, write_bundle):
    """Readers and mutations get through between two attempts; the migration ends once the reader does."""
    apply(dsn, bundle=write_bundle(INVOICE))
    newer = write_bundle(INVOICE, TOTAL)
    with (
        psycopg.connect(dsn) as reader,
        in_background(lambda: apply(dsn, bundle=newer, patience=BRISK)) as owner,
    ):
        reader.execute("select from onecommit.invoice")
        assert waiting_pid(admin, "relation", blocked_by=reader.info.backend_pid)
        with psycopg.connect(dsn) as application:
            application.execute("set lock_timeout = '20s'")
            mutate(application)
            application.execute("insert into onecommit.invoice values (1)")
        assert not owner.done()
        reader.commit()
    assert owner.result(0).applied_versions == (3,)
    assert admin.execute("select id, total from onecommit.invoice").fetchall() == [(1, None)]


def test_a_migration_that_gives_up_on_a_long_reader_names_it_and_changes_nothing(
    dsn, admin, write_bundle
):
    """The version stays, the locks are free, and the reader's pid is in the error."""
    apply(dsn, bundle=write_bundle(INVOICE))
    newer = write_bundle(INVOICE, TOTAL)
    with psycopg.connect(dsn, application_name="pg_dump") as reader:
        reader.execute("select from onecommit.invoice")
        before = catalog(admin)
        with pytest.raises(errors.SchemaBusy, match=r"migration 0003.*\(pg_dump\)") as raised:
            apply(dsn, bundle=newer, patience=HURRIED)
        assert raised.value.blocking_pids == (reader.info.backend_pid,)
        assert catalog(admin) == before
        assert advisory_locks(admin) == []


def test_a_run_with_nothing_to_do_waits_for_no_mutation(dsn, write_bundle):
    """A deployment may run it at every start: it takes the schema lock only to change something."""
    bundle = write_bundle()
    apply(dsn, bundle=bundle)
    with mutation_in_flight(dsn):
        assert apply(dsn, bundle=bundle, patience=HURRIED).state is SchemaState.COMPATIBLE


def test_the_status_waits_for_nobody(dsn, admin, write_bundle):
    """It can be read while an owner holds every lock and a migration is under way."""
    bundle = write_bundle(INVOICE)
    apply(dsn, bundle=bundle)
    with another_owner(dsn), psycopg.connect(dsn) as ddl:
        ddl.execute("create table onecommit.extra ()")
        assert status(dsn, bundle=bundle).state is SchemaState.COMPATIBLE
