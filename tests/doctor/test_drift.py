"""Whatever is changed by hand in a store is named, by the check that is for it and by no other."""

import pytest

from onecommit.doctor.catalog import read_catalog
from onecommit.doctor.expected import definition_of, packaged_definitions

from tests.clusters import Cluster
from tests.doctor.examinations import COMPLETE_JOB, patient, told
from tests.stores import Store

pytestmark = pytest.mark.pg

STRANGER = "create role stranger"
EXTRA = (
    "create function onecommit.extra() returns integer language sql as 'select 1'",
    "revoke all on function onecommit.extra() from public",
)
NOTHING = (
    "create function public.nothing() returns trigger language plpgsql as 'begin return null; end'"
)
LATE = "create or replace function onecommit.store_now() returns timestamptz language sql volatile parallel safe as 'select now()'"
RESTRICTIVE = "create policy owner_select on onecommit.work as restrictive for select to current_user using (true)"
NARROWED = "create trigger guard_work before update of state on onecommit.work for each row execute function onecommit.guard_work()"
ADOPTED = [
    "create table public.other (slot smallint) partition by list (slot)",
    "alter table onecommit.completion detach partition onecommit.completion_4",
    "alter table onecommit.completion_4 set schema public",
    "create table onecommit.completion_4 partition of public.other for values in (4)",
]
SWAPPED = [
    "alter table onecommit.ready detach partition onecommit.ready_1",
    "alter table onecommit.ready detach partition onecommit.ready_2",
    # Of other tests: the rows of the one do not fit the bound of the other.
    "delete from onecommit.ready_1",
    "delete from onecommit.ready_2",
    "alter table onecommit.ready attach partition onecommit.ready_1 for values in (2)",
    "alter table onecommit.ready attach partition onecommit.ready_2 for values in (1)",
]
RELAXED = "alter table onecommit.queue drop constraint queue_aging_check"

# check, what is done, and the beginning of what is said about it.
BREAKS = [
    ("store", ["delete from onecommit.store_metadata"], "store_metadata holds no StoreId"),
    ("store", ["delete from onecommit.schema_migration where version > 1"], "schema_migration is at version 1"),
    ("routine_bodies", ["create or replace function onecommit.schema_lock_class() returns integer language sql stable as 'select 1'"],
     "schema_lock_class() has another body"),
    ("routine_bodies", ["drop function onecommit.retry_safe_code"], "retry_safe_code() is missing"),
    ("routine_bodies", EXTRA, "extra() is no routine of this release"),
    ("routine_headers", [f"alter function {COMPLETE_JOB} security invoker"],
     "complete_job(bigint, bigint, integer, bigint, bigint, integer, jsonb) runs as its caller"),
    ("routine_headers", ["alter function onecommit.record_action security definer"], "record_action(text, text, text, text) runs as its owner"),
    ("routine_headers", [f"alter function {COMPLETE_JOB} reset search_path"],
     "complete_job(bigint, bigint, integer, bigint, bigint, integer, jsonb) lacks the setting search_path=pg_catalog, pg_temp"),
    ("routine_headers", [f"alter function {COMPLETE_JOB} set search_path = pg_temp, pg_catalog"],
     "complete_job(bigint, bigint, integer, bigint, bigint, integer, jsonb) lacks the setting search_path=pg_catalog, pg_temp"),
    ("routine_headers", ["alter function onecommit.enter_runtime set search_path = public"], "enter_runtime(bigint) has the setting search_path=public"),
    ("routine_headers", ["alter function onecommit.current_scope() leakproof"], "current_scope() is leakproof, parallel safe, stable, not parallel safe, stable"),
    ("routine_headers", ["alter function onecommit.attempt_status immutable"], "attempt_status"),
    ("clock", [LATE], "store_now() is not clock_timestamp()"),
    ("ownership", [STRANGER, "alter table onecommit.ready_3 owner to stranger"], "ready_3 belongs to stranger"),
    ("ownership", [STRANGER, "alter table onecommit.work owner to stranger", "alter function onecommit.guard_work owner to stranger"],
     "guard_work() belongs to stranger"),
    ("ownership", [STRANGER, f"alter function {COMPLETE_JOB} owner to stranger"], "complete_job"),
    ("ownership", [STRANGER, "alter domain onecommit.work_state owner to stranger"], "work_state belongs to stranger"),
    ("ownership", [STRANGER, "alter sequence onecommit.epoch_fence owner to stranger"], "epoch_fence belongs to stranger"),
    ("public_grants", ["grant select on onecommit.claim to public"], "claim SELECT is granted to PUBLIC"),
    ("public_grants", ["grant update (state) on onecommit.work to public"], "work.state UPDATE is granted to PUBLIC"),
    ("public_grants", ["grant usage on sequence onecommit.job_number to public"], "job_number USAGE is granted to PUBLIC"),
    ("public_grants", [f"grant execute on function {COMPLETE_JOB} to public"], "complete_job"),
    ("public_grants", ["grant usage on type onecommit.work_view to public"], "work_view USAGE is granted to PUBLIC"),
    ("public_grants", ["grant usage on schema onecommit to public"], "onecommit USAGE is granted to PUBLIC"),
    ("public_grants", ["alter default privileges in schema onecommit grant select on tables to public"],
     "tables made by postgres SELECT is granted to PUBLIC"),
    ("row_security", ["alter table onecommit.work_history disable row level security"], "work_history has row-level security switched off"),
    ("row_security", ["alter table onecommit.dispatch no force row level security"], "dispatch does not force"),
    ("row_security", ["drop policy in_scope_insert on onecommit.effect_permit"], "effect_permit.in_scope_insert the policy is missing"),
    ("row_security", ["alter policy in_scope_select on onecommit.work using (true)"], "work.in_scope_select has another condition"),
    ("row_security", ["alter policy in_scope_update on onecommit.scope with check (scope_id = onecommit.current_scope())"],
     "scope.in_scope_update has another condition"),
    ("row_security", [STRANGER, "alter policy owner_select on onecommit.work_payload to stranger"], "work_payload.owner_select holds for stranger"),
    ("row_security", ["alter policy work_contract_discovery_owner on onecommit.dispatch to public"],
     "dispatch.work_contract_discovery_owner holds for PUBLIC"),
    ("row_security", ["create policy everything on onecommit.work_result using (true)"], "work_result.everything is no policy"),
    ("row_security", ["drop policy owner_select on onecommit.work", RESTRICTIVE], "work.owner_select is not a permissive policy"),
    ("triggers", ["drop trigger guard_work on onecommit.work"], "work.guard_work the trigger is missing"),
    ("triggers", ["alter table onecommit.effect_permit disable trigger guard_permit"], "effect_permit.guard_permit is disabled"),
    ("triggers", ["alter table onecommit.work enable replica trigger guard_work"], "work.guard_work is disabled"),
    ("triggers", ["drop trigger guard_work on onecommit.work", NARROWED], "work.guard_work is defined otherwise"),
    ("triggers", [NOTHING, "create trigger spy after insert on onecommit.claim_2 for each row execute function public.nothing()"],
     "claim_2.spy is no trigger of this release"),
    ("triggers", ["alter table onecommit.lane disable trigger all"], "lane.RI_ConstraintTrigger"),
    ("triggers", ["create rule away as on delete to onecommit.progress do instead nothing"], "progress.away a rule rewrites"),
    ("ring", ["alter table onecommit.completion detach partition onecommit.completion_4"], "completion_4 is detached"),
    ("ring definitions", ADOPTED, "completion_4 is attached to public.other, not to completion"),
    ("ring", SWAPPED, "ready_1 holds another slot than 1"),
    ("ring", ["alter table onecommit.claim_5 set unlogged"], "claim_5 is not an ordinary logged table"),
    ("ring objects definitions", ["alter table onecommit.claim_5 rename to claim_old"], "claim_5 is missing"),
    ("ring objects", ["create table onecommit.ready_6 partition of onecommit.ready for values in (6)"], "ready_6 is attached to ready under a name"),
    ("ring", ["create schema elsewhere", "alter table onecommit.ready_0 set schema elsewhere"], "ready_0 is missing"),
    ("ring objects", ["alter table onecommit.ready_0 rename to hidden", "alter table onecommit.hidden set schema public",
                       "create view onecommit.ready_0 as select * from public.hidden"], "ready_0 is not an ordinary logged table"),
    ("objects", ["create table onecommit.mine ()"], "mine was made by no migration (table)"),
    ("objects", ["create view onecommit.all_work as select 1 as one"], "all_work was made by no migration (view)"),
    ("objects", ["create sequence onecommit.more"], "more was made by no migration (sequence)"),
    ("objects", ["create index spy on onecommit.work (state)"], "spy was made by no migration (index)"),
    ("objects", ["drop index onecommit.claim_by_worker"], "claim_by_worker the index is missing"),
    ("objects", ["create type onecommit.mood as enum ('good')", "revoke usage on type onecommit.mood from public"], "mood was made by no migration (type)"),
    ("objects", ["create type onecommit.pair as (a integer, b integer)", "revoke usage on type onecommit.pair from public"], "pair was made by no migration ("),
    ("objects", ["create operator onecommit.=== (leftarg = bigint, rightarg = bigint, function = int8eq)"], "was made by no migration (operator)"),
    ("objects", ["alter table onecommit.scheduled set unlogged"], "scheduled is unlogged"),
    ("objects", ["update pg_index set indisvalid = false where indexrelid = 'onecommit.callback_old'::regclass"],
     "callback_old the index is not valid"),
    ("definitions", ["alter table onecommit.progress add extra integer"], "progress.extra was made by no migration (column: integer)"),
    ("definitions", ["alter table onecommit.lease drop deadline"], "lease.deadline the column is missing"),
    ("definitions", ["alter table onecommit.claim add extra integer"], "claim_3.extra was made by no migration"),
    ("definitions", ["alter table onecommit.queue alter paused drop default"], "queue.paused the column is: boolean not null; and not:"),
    ("definitions", ["alter table onecommit.ring alter retention set default '2 hours'"],
     "ring.retention the column is: interval not null default '02:00:00'::interval; and not: interval not null default '01:00:00'::interval"),
    ("definitions", ["alter table onecommit.lease alter attempt type integer"], "lease.attempt the column is: integer not null; and not: smallint"),
    ("definitions", ["alter table onecommit.ready alter kind drop not null"], "ready_5.kind the column is: text; and not: text not null"),
    ("definitions", ['alter table onecommit.work alter code type text collate "default"'], 'work.code the column is: text; and not: text collate "C"'),
    ("definitions", ["alter table onecommit.scheduled alter args set storage external"], "scheduled.args the column is: json storage e not null"),
    ("definitions", ["alter table onecommit.work alter work_id set generated by default"], "work.work_id the column is: bigint not null generated by default"),
    ("definitions", ["alter table onecommit.worker alter caller_owned drop expression"], "worker.caller_owned the column is: boolean not null; and not"),
    ("definitions", ["alter table onecommit.queue drop constraint queue_aging_check"], "queue.queue_aging_check the constraint is missing"),
    ("definitions", ["alter table onecommit.queue add check (queue <> 'x')"], "queue.queue_queue_check1 was made by no migration (constraint: CHECK"),
    ("definitions", [RELAXED, "alter table onecommit.queue add constraint queue_aging_check check (aging > '0') not valid"],
     "queue.queue_aging_check the constraint is: CHECK ((aging > '00:00:00'::interval)) NOT VALID; and not: CHECK"),
    ("definitions", ["alter table onecommit.dead_letter drop constraint dead_letter_pkey"], "dead_letter.dead_letter_pkey the constraint is missing"),
    ("definitions", ["alter domain onecommit.work_version drop constraint work_version_check"], "work_version.work_version_check the constraint is missing"),
    ("definitions", ["drop index onecommit.dead_letter_by_age", "create index dead_letter_by_age on onecommit.dead_letter (died_at)"],
     "dead_letter_by_age the index is: dead_letter USING btree (died_at); and not: dead_letter USING btree (died_at, job_id)"),
    ("definitions", ["alter sequence onecommit.job_number cache 50"], "job_number the sequence is: bigint start 1 increment 1 from 1 to 9223372036854775807 cache 50"),
    ("definitions", ["alter sequence onecommit.lane_7_number cycle"], "lane_7_number the sequence is: "),
    ("definitions", ["alter table onecommit.completion_2 reset (autovacuum_vacuum_insert_threshold)"], "completion_2 the table is: plain; and not: plain;"),
    ("definitions", ["alter table onecommit.progress set (autovacuum_enabled = off)"], "progress the table is: plain; autovacuum_enabled=off, fillfactor=70"),
    ("definitions", ["alter type onecommit.outcome add value 'forgotten'"], "outcome the type is: 'completed', "),
    ("definitions", ["alter type onecommit.closing_verdict add attribute extra text"], "closing_verdict the type is: item, verdict, extra; and not"),
    ("definitions", ["alter type onecommit.closing_verdict alter attribute item type bigint"], "closing_verdict.item the column is: bigint; and not: integer"),
    ("system_catalog", ["create function pg_catalog.clock_timestamp(integer) returns timestamptz language sql as 'select now()'"],
     "function clock_timestamp(integer) stands in pg_catalog"),
    ("system_catalog", ["create operator pg_catalog.= (leftarg = bigint, rightarg = text, function = starts_as)"],
     "operator =(bigint,text) stands in pg_catalog"),
    ("system_catalog", ["grant create on schema pg_catalog to public"], "CREATE on pg_catalog for PUBLIC stands"),
]  # fmt: skip
STARTS_AS = (
    "create function public.starts_as(bigint, text) returns boolean language sql as 'select true'"
)


def test_a_store_as_installed_has_no_finding(shared_store: Store):
    """In the single-role profile, whose name it tells."""
    with patient(shared_store.observer) as store:
        report = store.examine()
    assert told(report) == []
    assert report.profile == "single-role"
    assert report.unseen == ()


@pytest.mark.parametrize(
    ("checks", "statements", "said"), BREAKS, ids=[f"{c}-{s[:40]}" for c, _, s in BREAKS]
)
def test_a_change_is_named_by_its_check(
    shared_store: Store, checks: str, statements: list[str], said: str
):
    """With the object that was changed, and with something that one can do."""
    with patient(shared_store.observer) as store:
        store.do(STARTS_AS, "set local search_path = public, pg_catalog", *statements)
        report = store.examine()
    lines = told(report)
    assert {name for name, _ in report.findings} == set(checks.split()), lines
    assert [
        line
        for line in lines
        if line.startswith(f"{checks.split(maxsplit=1)[0]}: ") and said in line
    ], lines
    assert all(finding.remedy for _, finding in report.findings)


def test_an_overload_is_named(shared_store: Store):
    """A same-named wrapper could be called in place of the contract's function."""
    with patient(shared_store.observer) as store:
        store.do(
            "create function onecommit.complete_job(bigint) returns integer language sql as 'select 1'",
            "revoke all on function onecommit.complete_job(bigint) from public",
        )
        lines = told(store.examine())
    assert (
        "routine_bodies: complete_job(bigint) shares its name with another routine, so a call may reach the wrong one"
        in lines
    )


def test_the_definitions_are_those_that_the_migrations_make(gate_postgres: Cluster):
    """On every major the same: after a change of a migration run tools/generate_definitions.py."""
    with (
        gate_postgres.database(template=gate_postgres.template) as database,
        database.connect() as connection,
    ):
        catalog = read_catalog(connection, "onecommit")
    made = {definition_of(row, catalog.schema) for row in catalog.definitions}
    assert made == set(packaged_definitions())
