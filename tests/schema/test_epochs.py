"""Activating and rotating the runtime epoch."""

import time
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from onecommit import errors
from onecommit.schema import apply, ensure_epoch, initialize_epoch, rotate_epoch, status
from onecommit.schema.lock import Patience, schema_lock

from tests.schema.observation import in_background, waiting_pid

pytestmark = pytest.mark.pg

HURRIED = Patience(attempt=timedelta(milliseconds=50), total=timedelta(milliseconds=150))
WHO = {"actor": "ada", "reason": "first deployment"}


@pytest.fixture
def store(dsn: str) -> str:
    """The DSN of a migrated database without an epoch."""
    apply(dsn)
    return dsn


def history(admin):
    """The audit, oldest first."""
    return admin.execute(
        "select epoch, previous, actor, reason from onecommit.runtime_epoch_history order by epoch"
    ).fetchall()


def test_the_first_epoch_is_activated_once_with_its_audit(store, admin):
    """It is the database's unix milliseconds; a second activation is refused and leaves no trace."""
    started = time.time() * 1000
    report = initialize_epoch(store, **WHO)
    assert started - 5000 < report.epoch < time.time() * 1000 + 5000
    assert (status(store).active_epoch, status(store).store_id) == (report.epoch, report.store_id)
    with pytest.raises(errors.EpochFenced, match="already has a runtime epoch"):
        initialize_epoch(store, **WHO)
    assert history(admin) == [(report.epoch, None, "ada", "first deployment")]


def test_ensuring_an_epoch_activates_one_only_if_there_is_none(store, admin):
    """The second call finds the first one's epoch."""
    assert ensure_epoch(store, **WHO) == ensure_epoch(store, **WHO)
    assert len(history(admin)) == 1


def test_rotation_replaces_the_expected_epoch(store, admin):
    """The new epoch is greater, and both are in the audit."""
    first = initialize_epoch(store, **WHO)
    second = rotate_epoch(store, expected=first.epoch, actor="bob", reason="restored")
    assert second.epoch > first.epoch
    assert second.previous == first.epoch
    assert status(store).active_epoch == second.epoch
    assert history(admin)[1:] == [(second.epoch, first.epoch, "bob", "restored")]


def test_a_stale_expectation_changes_nothing(store, admin):
    """Of two operators who rotate from the same epoch, the second one is told."""
    first = initialize_epoch(store, **WHO)
    second = rotate_epoch(store, expected=first.epoch, **WHO)
    before = history(admin)
    with pytest.raises(errors.EpochFenced, match="not the expected one"):
        rotate_epoch(store, expected=first.epoch, **WHO)
    assert history(admin) == before
    assert status(store).active_epoch == second.epoch


def test_rotation_needs_an_epoch_to_replace(store):
    """A store without one has to be initialised."""
    with pytest.raises(errors.EpochFenced):
        rotate_epoch(store, expected=1, **WHO)
    assert status(store).active_epoch is None


def test_a_clock_behind_the_active_epoch_does_not_stop_a_rotation(store):
    """The candidate is then the next number."""
    ahead = round(time.time() * 1000) + 10**9
    initialize_epoch(store, candidate=ahead, **WHO)
    assert rotate_epoch(store, expected=ahead, **WHO).epoch == ahead + 1


def test_a_candidate_that_does_not_rise_is_refused(store):
    """Epochs only grow, whoever chooses them."""
    epoch = initialize_epoch(store, **WHO).epoch
    for candidate in (epoch, epoch - 1, 0, -1):
        with pytest.raises(errors.InvalidArgument, match="candidate"):
            rotate_epoch(store, expected=epoch, candidate=candidate, **WHO)
    assert status(store).active_epoch == epoch


@pytest.mark.parametrize("field", ["actor", "reason"])
@pytest.mark.parametrize("text", ["", "  ", "\t\n", "a\0b"])
def test_an_audit_without_actor_or_reason_is_refused(store, field, text):
    """The error names the field."""
    with pytest.raises(errors.InvalidArgument, match=field):
        initialize_epoch(store, **WHO | {field: text})
    assert status(store).active_epoch is None


def test_another_store_is_refused(store):
    """A deployment that names its StoreId does not activate anything in a stranger's database."""
    with pytest.raises(errors.StoreMismatch):
        initialize_epoch(store, store_id=UUID(int=1), **WHO)
    epoch = initialize_epoch(store, store_id=status(store).store_id, **WHO).epoch
    with pytest.raises(errors.StoreMismatch):
        rotate_epoch(store, expected=epoch, store_id=UUID(int=1), **WHO)
    assert status(store).active_epoch == epoch


def test_a_schema_that_is_missing_has_no_epoch(dsn):
    """The error says to migrate."""
    with pytest.raises(errors.SchemaMissing, match="onecommit migrate"):
        initialize_epoch(dsn, **WHO)


def test_rotation_waits_for_a_mutation_in_flight(store, admin):
    """What has begun under the old epoch ends before the new one is active."""
    epoch = initialize_epoch(store, **WHO).epoch
    lock = schema_lock(admin, "onecommit")
    assert lock is not None
    with psycopg.connect(store) as mutation:
        mutation.execute("select pg_advisory_xact_lock_shared(%s::int, %s::int)", lock.key)
        with in_background(lambda: rotate_epoch(store, expected=epoch, **WHO)) as rotation:
            assert waiting_pid(admin, "advisory", blocked_by=mutation.info.backend_pid)
            assert status(store).active_epoch == epoch
            mutation.commit()
            assert rotation.result(30).epoch > epoch


def test_an_epoch_change_gives_up_naming_the_mutation_in_flight(store):
    """The wait is bounded, and the error carries the pid."""
    with psycopg.connect(store) as mutation:
        lock = schema_lock(mutation, "onecommit")
        assert lock is not None
        mutation.execute("select pg_advisory_xact_lock_shared(%s::int, %s::int)", lock.key)
        with pytest.raises(errors.SchemaBusy, match="schema lock") as busy:
            initialize_epoch(store, patience=HURRIED, **WHO)
        assert busy.value.blocking_pids == (mutation.info.backend_pid,)


def test_finding_an_epoch_waits_for_no_mutation(store):
    """`migrate --init` may run at every deployment."""
    epoch = initialize_epoch(store, **WHO).epoch
    with psycopg.connect(store) as mutation:
        lock = schema_lock(mutation, "onecommit")
        assert lock is not None
        mutation.execute("select pg_advisory_xact_lock_shared(%s::int, %s::int)", lock.key)
        assert ensure_epoch(store, patience=HURRIED, **WHO).epoch == epoch
