"""A runtime's credential, used by hand: without the scope nothing, with one scope its rows, and nothing that is not its to change."""

import psycopg
import pytest

from tests.attacks.intruders import Target
from tests.engine import Engine
from tests.work_requests import accept, request
from tests.works import Operator, Runtime

pytestmark = pytest.mark.pg

SCOPED = ("scope", "work", "work_payload", "dispatch", "effect_permit", "work_history")
MINE, THEIRS, CLOSED = "tenant-1", "tenant-2", "tenant-3"
# Each stands for what the text says that a runtime cannot do; `=` takes no value that would change a row if it were allowed.
REFUSED = {
    "reactivate a scope": "update onecommit.scope set state = 'active', disabled_at = null",
    "reactivate it by its generation": "update onecommit.scope set generation = generation + 1",
    "disable a scope": "update onecommit.scope set state = 'disabled', disabled_at = now()",
    "make a scope": "insert into onecommit.scope values ('tenant-9', 1, 'active', now())",
    "make its own again": "insert into onecommit.scope values ('{scope}', 9, 'active', now()) on conflict (scope_id) do update set state = 'active'",
    "read the scope's history": "select from onecommit.scope_history",
    "write the scope's history": "insert into onecommit.scope_history (scope_id, generation, event, actor, at) values ('{scope}', 9, 'created', 'x', now())",
    "delete history": "delete from onecommit.work_history",
    "empty history": "truncate onecommit.work_history",
    "rewrite history": "update onecommit.work_history set actor = 'ada', at = 'epoch'",
    "delete Work": "delete from onecommit.work",
    "accept Work by hand": "insert into onecommit.work (scope_id) select scope_id from onecommit.work",
    "delete dispatch": "delete from onecommit.dispatch",
    "dispatch by hand": "insert into onecommit.dispatch (work_id) values (1)",
    "change a payload": "update onecommit.work_payload set payload = 'x'",
    "delete a payload": "delete from onecommit.work_payload",
    "replace a payload": "insert into onecommit.work_payload values (1, '{scope}', 'x') on conflict (work_id) do update set payload = excluded.payload",
    "replace a result": "update onecommit.work_result set result = 'x'",
    "read a result": "select result from onecommit.work_result",
    "delete a permit": "delete from onecommit.effect_permit",
    "rename a permit's activity": "update onecommit.effect_permit set activity_id = gen_random_uuid()",
    "change a permit's fence": "update onecommit.effect_permit set lease_generation = 9, scope_generation = 9",
    "read commands": "select from onecommit.operator_command",
    "forge a command": "insert into onecommit.operator_command (scope_id, command_id, operation, fingerprint, state, actor, created_at)"
                       " values ('{scope}', 'x', 'cancel', sha256('x'), 'started', 'ada', now())",
    "read the audit": "select from onecommit.operator_action",
    "read epochs": "select from onecommit.runtime_epoch_history",
    "move the epoch": "select setval('onecommit.epoch_fence', 1)",
    "lock a table": "do $$ begin lock table onecommit.work in access exclusive mode; end $$",
    "take a table": "alter table onecommit.work owner to current_user",
    "take the schema": "alter schema onecommit owner to current_user",
    "take a routine": "alter function onecommit.claim_work owner to current_user",
    "switch row security off": "alter table onecommit.work disable row level security",
    "stop forcing it": "alter table onecommit.work no force row level security",
    "add a policy": "create policy mine on onecommit.work using (true)",
    "widen a policy": "alter policy in_scope_select on onecommit.work using (true)",
    "drop a policy": "drop policy in_scope_select on onecommit.work",
    "drop a guard": "drop trigger guard_work on onecommit.work",
    "disable the guards": "alter table onecommit.work disable trigger all",
    "add a trigger": "create trigger mine before update on onecommit.work for each row execute function suppress_redundant_updates_trigger()",
    "add a rule": "create rule mine as on update to onecommit.work do instead nothing",
    "skip triggers": "set session_replication_role = replica",
    "make a view beside": "create view onecommit.mine as select 1",
    "use a job's table": "select from onecommit.ready",
}  # fmt: skip
IDENTITY = ("work_id", "scope_id", "activity_id", "command_id", "idempotency_key")
POLICY = ("contract_name", "contract_version", "exit_aware", "codec", "classification", "retention_id", "safety", "retry_algorithm",
          "max_attempts", "max_elapsed_us", "initial_delay_us", "max_delay_us", "lease_us", "renewal_us", "max_lease_us", "plan_version",
          "offsets_us", "circuit_us", "deadline", "due_at", "priority", "authorized_attempts")  # fmt: skip
SEALS = (
    "payload_sha256",
    "fingerprint_schema",
    "fingerprint",
    "accepted_at",
    "scope_generation",
    "purged_at",
)
# Rows of another scope, by statements that the runtime may run: none is found, or the row is refused.
ACROSS = {
    "update onecommit.work set code = 'x' where scope_id = %s": 0,
    "update onecommit.work set lease_expires_at = lease_expires_at + interval '1 h' where scope_id = %s": 0,
    "update onecommit.dispatch set due_at = due_at - interval '1 h' where scope_id = %s": 0,
    "update onecommit.effect_permit set outcome = 'proven_no_effect' where scope_id = %s": 0,
    "select from onecommit.work where scope_id = %s": 0,
    "select from onecommit.work where scope_id = %s for update skip locked": 0,
    "select from onecommit.work_payload where scope_id = %s": 0,
    "insert into onecommit.work_history (work_id, scope_id, revision, event, attempt, lease_generation, scope_generation, epoch, at)"
    " values (1, %s, 1, 'forged', 1, 1, 1, 1, now())": None,
    "insert into onecommit.work_result values (99, %s, 'json', sha256('x'), 'x')": None,
    "insert into onecommit.effect_permit (work_id, scope_id, attempt, lease_generation, scope_generation, epoch, lease_owner, activity_id, granted_at)"
    " values (1, %s, 9, 9, 1, 1, 1, gen_random_uuid(), now())": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def tenants(target: Target) -> Target:
    """Work of two scopes with a permit and a result each; of a third one that is disabled."""
    acceptor = target.engine("work_acceptor")
    runtime = Runtime(target.engine("work_runtime"), owner=7, epoch=target.epoch)
    for scope in (MINE, THEIRS, CLOSED):
        for number in range(2):
            name = f"{scope}-{number}"
            made = accept(acceptor, request(scope=scope, command_id=name, idempotency_key=name))
            [claimed] = runtime.claim((made.work_id, made.revision), scope=scope)
            assert runtime.permit(claimed, p_scope_id=scope).outcome == "granted"
        assert runtime.admit(claimed, p_scope_id=scope).outcome == "admitted"
        assert runtime.complete(claimed, p_scope_id=scope).state == "succeeded"
    assert Operator(target.engine("work_operator")).disable(p_scope_id=CLOSED).outcome == "disabled"
    return target


def in_scope(target: Target, scope: str | None) -> Engine:
    runtime = target.engine("work_runtime")
    if scope is not None:
        runtime.sql("select set_config('onecommit.scope_id', %s, false)", scope)
    return runtime


def test_without_the_scope_there_are_no_rows(tenants: Target):
    """None, an empty one, one that nobody has, one with a pattern in it."""
    for scope in (None, "", "tenant-9", "%", "tenant-_", "TENANT-1", "tenant-1 "):
        runtime = in_scope(tenants, scope)
        for table in SCOPED:
            assert runtime.value(f"select count(*) from onecommit.{table}") == 0, (scope, table)


def test_with_one_scope_there_are_its_rows(tenants: Target):
    """As many as there are, and of no other."""
    for scope in (MINE, THEIRS, CLOSED):
        runtime = in_scope(tenants, scope)
        for table in SCOPED:
            there = tenants.value(
                f"select count(*) from onecommit.{table} where scope_id = %s", scope
            )
            seen = runtime.sql(f"select scope_id from onecommit.{table}")
            assert [row.scope_id for row in seen] == [scope] * there, table
            assert there > 0


@pytest.mark.parametrize("scope", [None, MINE, CLOSED])
@pytest.mark.parametrize("attack", REFUSED)
def test_what_is_not_a_runtimes_to_do_is_refused(tenants: Target, attack: str, scope: str | None):
    """By a missing right or by a policy, whatever the scope: also of one that was disabled."""
    runtime = in_scope(tenants, scope)
    before = tenants.everything()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        runtime.connection.execute(REFUSED[attack].format(scope=scope or MINE))
    assert tenants.everything() == before


def test_no_column_of_an_acceptance_is_a_runtimes_to_write(tenants: Target):
    """Identity, policy, payload and fingerprint: to what they are, to another row's, to null."""
    runtime = in_scope(tenants, MINE)
    before = tenants.everything()
    for column in (*IDENTITY, *POLICY, *SEALS):
        another = f"(select o.{column} from onecommit.work o order by 1 desc limit 1)"
        # A number that is always generated takes nothing but its default.
        for value in ("default",) if column == "work_id" else (column, another, "null", "default"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                runtime.connection.execute(f"update onecommit.work set {column} = {value}")
    assert tenants.everything() == before


def test_a_runtime_passes_nothing_on(tenants: Target):
    """PostgreSQL warns where somebody grants what he may not grant."""
    acl = "select array_agg(relacl::text order by oid) from pg_class where relnamespace = 'onecommit'::regnamespace"
    before = tenants.value(acl)
    for right in ("select", "update (state)", "all"):
        in_scope(tenants, MINE).connection.execute(f"grant {right} on onecommit.work to public")
    assert tenants.value(acl) == before


@pytest.mark.parametrize("statement", ACROSS)
def test_rows_of_another_scope_are_out_of_reach(tenants: Target, statement: str):
    """Of statements that are allowed in its own scope."""
    runtime = in_scope(tenants, MINE)
    before = tenants.everything()
    for scope in (THEIRS, CLOSED):
        if ACROSS[statement] is None:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                runtime.connection.execute(statement, (scope,))
        else:
            assert runtime.connection.execute(statement, (scope,)).rowcount == 0
    assert tenants.everything() == before


def test_a_scope_that_was_disabled_admits_nothing(tenants: Target):
    """By the operations either: its rows are seen, and each call says that the scope is closed."""
    runtime = Runtime(tenants.engine("work_runtime"), owner=7, epoch=tenants.epoch)
    works = tenants.admin.execute(
        "select work_id, revision from onecommit.work where scope_id = %s", (CLOSED,)
    ).fetchall()
    before = tenants.everything()
    assert {row.outcome for row in runtime.claim(*works, scope=CLOSED)} == {"lost"}
    again = request(scope=CLOSED, command_id="late", idempotency_key="late")
    assert accept(tenants.engine("work_acceptor"), again).outcome == "refused"
    assert tenants.everything() == before
