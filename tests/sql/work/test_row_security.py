"""What the logins of Work can see and change, tried by hand beside the operations."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.engine import Engine
from tests.works import Works

pytestmark = pytest.mark.pg

SCOPED = (
    "scope",
    "scope_history",
    "work",
    "work_payload",
    "work_result",
    "dispatch",
    "effect_permit",
    "work_history",
    "operator_command",
)
# What the runtime's login may read of them; the reader's may not read payloads.
RUNTIME_READS = ("scope", "work", "work_payload", "dispatch", "effect_permit", "work_history")
ACCEPTANCE = [
    "scope_id",
    "activity_id",
    "command_id",
    "idempotency_key",
    "contract_name",
    "contract_version",
    "exit_aware",
    "codec",
    "classification",
    "retention_id",
    "payload_sha256",
    "safety",
    "retry_algorithm",
    "max_attempts",
    "max_elapsed_us",
    "initial_delay_us",
    "max_delay_us",
    "lease_us",
    "renewal_us",
    "max_lease_us",
    "plan_version",
    "offsets_us",
    "circuit_us",
    "deadline",
    "due_at",
    "priority",
    "fingerprint_schema",
    "fingerprint",
    "accepted_at",
    "scope_generation",
    "purged_at",
    "authorized_attempts",
]


def enter(engine: Engine, scope: str = "tenant-1") -> Engine:
    """A transaction in which row-level security shows this scope."""
    engine.begin()
    engine.sql("select set_config('onecommit.scope_id', %s, true)", scope)
    return engine


def denied(engine: Engine, statement: str, scope: str = "tenant-1") -> None:
    enter(engine, scope)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        engine.sql(statement)
    engine.rollback()


def counts(engine: Engine, *tables: str) -> list[int]:
    return [engine.value(f"select count(*) from onecommit.{table}") for table in tables]


@pytest.fixture
def two_scopes(works: Works) -> Works:
    """One permitted item in each."""
    for scope in ("tenant-1", "tenant-2"):
        work, runtime = works.accept(scope=scope), works.runtime()
        [claimed] = runtime.claim((work.work_id, 1), scope=scope)
        assert runtime.permit(claimed, p_scope_id=scope).outcome == "granted"
    return works


@contextmanager
def granted(works: Works, capability: str, what: str) -> Iterator[None]:
    """More than the manifest gives, for as long as the block."""
    role = works.logins.role(capability)
    works.store.observer.execute(f"grant {what} to {role}")
    try:
        yield
    finally:
        works.store.observer.execute(f"revoke {what} from {role}")


def test_every_scoped_table_forces_row_level_security(works: Works):
    """On its owner too; a table with a scope that is not among them would be open."""
    forced = works.store.observer.execute(
        "select relname::text from pg_class where relnamespace = 'onecommit'::regnamespace and relrowsecurity and relforcerowsecurity"
    ).fetchall()
    with_scope = works.store.observer.execute(
        "select c.relname::text from pg_attribute a join pg_class c on c.oid = a.attrelid where a.attname = 'scope_id'"
        " and c.relkind = 'r' and c.relnamespace = 'onecommit'::regnamespace"
    ).fetchall()
    assert {name for (name,) in forced} == {name for (name,) in with_scope} == set(SCOPED)


def test_without_a_scope_a_runtime_sees_nothing(two_scopes: Works):
    runtime = two_scopes.engine("work_runtime")
    assert counts(runtime, *RUNTIME_READS) == [0] * len(RUNTIME_READS)


def test_with_a_scope_a_runtime_sees_its_rows_alone(two_scopes: Works):
    """Of two scopes one."""
    runtime = enter(two_scopes.engine("work_runtime"), "tenant-2")
    for table in RUNTIME_READS:
        scopes = runtime.sql(f"select distinct scope_id from onecommit.{table}")
        assert [row.scope_id for row in scopes] == ["tenant-2"], table
    runtime.rollback()


def test_an_operation_leaves_no_scope_behind(two_scopes: Works):
    """Later statements of the same transaction see no rows."""
    runtime = two_scopes.runtime()
    runtime.engine.begin()
    runtime.claim((1, 1))
    assert counts(runtime.engine, "work") == [0]
    runtime.engine.rollback()


def test_a_runtime_changes_no_acceptance(two_scopes: Works):
    """Not one column of what was accepted, its payload or its fingerprint."""
    runtime = two_scopes.engine("work_runtime")
    for column in ACCEPTANCE:
        denied(runtime, f"update onecommit.work set {column} = {column}")
    denied(runtime, "update onecommit.work_payload set payload = ''")
    columns = two_scopes.store.observer.execute(
        "select attname::text from pg_attribute where attrelid = 'onecommit.work'::regclass and attnum > 0"
    ).fetchall()
    free = {name for (name,) in columns} - set(ACCEPTANCE) - {"work_id"}
    assert free == {
        row.attname
        for row in runtime.sql(
            "select attname::text from pg_attribute where attrelid = 'onecommit.work'::regclass and attnum > 0"
            " and has_column_privilege('onecommit.work', attname, 'update')"
        )
    }


def test_a_runtime_deletes_nothing_and_rewrites_no_history(two_scopes: Works):
    runtime = two_scopes.engine("work_runtime")
    for table in SCOPED:
        denied(runtime, f"delete from onecommit.{table}")
        denied(runtime, f"truncate onecommit.{table}")
    denied(runtime, "update onecommit.work_history set code = null")
    denied(runtime, "update onecommit.work_result set result = null")
    denied(runtime, "update onecommit.effect_permit set activity_id = activity_id")


def test_a_runtime_touches_no_scope(two_scopes: Works):
    """It neither makes one nor disables one nor makes a disabled one active."""
    runtime = two_scopes.engine("work_runtime")
    denied(runtime, "update onecommit.scope set state = 'active'")
    denied(runtime, "insert into onecommit.scope values ('tenant-1', 1, 'active', now())")


def test_a_tombstone_stays_one_whoever_may_update_scopes(two_scopes: Works):
    """The policy refuses it beside the grants."""
    two_scopes.store.observer.execute(
        "update onecommit.scope set state = 'disabled', disabled_at = now(), generation = 2"
    )
    with granted(two_scopes, "work_runtime", "update on onecommit.scope"):
        denied(
            two_scopes.engine("work_runtime"),
            "update onecommit.scope set state = 'active', disabled_at = null",
        )


def test_nothing_is_written_into_another_scope(two_scopes: Works):
    denied(
        two_scopes.engine("work_runtime"),
        "insert into onecommit.work_history (work_id, scope_id, revision, event, attempt, lease_generation, scope_generation,"
        " epoch, at) values (1, 'tenant-2', 1, 'forged', 1, 1, 1, 1, now())",
    )


def test_a_lock_on_a_row_needs_the_right_to_update_it(two_scopes: Works):
    """Without the grant it is refused; without a policy it silently finds no row, which looks like an empty table."""
    runtime = two_scopes.engine("work_runtime")
    denied(runtime, "select from onecommit.work_payload for update")
    with granted(two_scopes, "work_runtime", "update on onecommit.work_payload"):
        enter(runtime)
        assert len(runtime.sql("select 1 from onecommit.work_payload")) == 1
        assert len(runtime.sql("select 1 from onecommit.work_payload for update")) == 0
        assert len(runtime.sql("select 1 from onecommit.work for update")) == 1
        runtime.rollback()


def test_a_reader_sees_everything_but_what_the_application_sent(two_scopes: Works):
    """And one scope at a time."""
    reader = two_scopes.engine("reader")
    tables = ("scope", "work", "dispatch", "effect_permit")
    assert counts(reader, *tables) == [0] * len(tables)
    enter(reader)
    assert counts(reader, *tables) == [1] * len(tables)
    reader.rollback()
    denied(reader, "select payload from onecommit.work_payload")
    denied(reader, "select result from onecommit.work_result")
    denied(reader, "select observation from onecommit.work_history")
    denied(reader, "update onecommit.work set code = null")


@pytest.mark.parametrize("capability", ["work_acceptor", "work_dispatcher"])
def test_who_only_calls_functions_reads_no_table(two_scopes: Works, capability: str):
    """Not even what discovery is made of."""
    for table in SCOPED:
        denied(two_scopes.engine(capability), f"select from onecommit.{table}")


OPERATIONS = {
    "work_acceptor": {"accept_work", "handoff_lock", "handoff_check"},
    "work_dispatcher": {"discover_work_dispatch", "mark_work_sleeper"},
    "work_runtime": {
        "claim_work",
        "renew_work",
        "acquire_permit",
        "admit_invocation",
        "complete_work",
        "suspend_contract",
    },
    "reader": set(),
}


@pytest.mark.parametrize("capability", OPERATIONS)
def test_each_login_has_its_own_operations(works: Works, capability: str):
    """And none of another's."""
    every = set().union(*OPERATIONS.values())
    allowed = {
        row.proname
        for row in works.engine(capability).sql(
            "select proname::text from pg_proc where proname = any (%s)"
            " and pronamespace = 'onecommit'::regnamespace and has_function_privilege(oid, 'execute')",
            list(every),
        )
    }
    assert allowed == OPERATIONS[capability]


def test_discovery_looks_across_scopes_by_its_policy_alone(works: Works):
    """Its function runs as the owner, for whom row-level security is forced."""
    for scope in ("tenant-1", "tenant-2"):
        works.accept(scope=scope)
    assert [d.scope_id for d in works.discover()] == ["tenant-1", "tenant-2"]
    observer = works.store.observer
    roles = observer.execute(
        "select polroles::regrole[]::text[], (select rolsuper from pg_roles where oid = polroles[1]) from pg_policy"
        " where polname = 'work_contract_discovery_owner'"
    ).fetchone()
    assert roles == ([f"owner_{works.store.database.name}"], False)
    observer.execute(
        "alter policy work_contract_discovery_owner on onecommit.dispatch using (false)"
    )
    try:
        assert works.discover() == []
    finally:
        observer.execute(
            "alter policy work_contract_discovery_owner on onecommit.dispatch using (true)"
        )
