-- Work protocol v1: effects at a provider, accepted once, done under a permit. Every table carries its scope, and
-- row-level security shows a runtime the rows of its transaction's scope alone. No foreign keys: each would lock the
-- parent's row once more at every step, and no Work is ever deleted.

-- Length and alphabet apart: an expression that counts to 200 costs ten times as much to match.
create domain "@schema@".work_identifier as text collate "C" check (value ~ '^[A-Za-z0-9._:-]+$' and octet_length(value) <= 200);
create domain "@schema@".work_version as text collate "C" check (value ~ '^[A-Za-z0-9._:-]+$' and octet_length(value) <= 100);
create domain "@schema@".sha256_digest as bytea check (octet_length(value) = 32);
create domain "@schema@".work_bytes as bytea check (octet_length(value) <= 262144);
-- Few checks on tables: each is read anew from its text by every statement that writes a row; a domain is prepared once
-- for a session.
create domain "@schema@".work_state as text check (value in (
    'pending', 'leased', 'effect_permitted', 'retry_wait', 'cancel_pending',
    'succeeded', 'succeeded_after_cancel_requested', 'failed', 'canceled_before_effect',
    'suspended_ambiguous_external_outcome', 'suspended_reconciliation_required', 'suspended_manual_resolution',
    'suspended_contract_unavailable'));
create domain "@schema@".closed_reason as text check (value in ('deadline', 'circuit', 'elapsed', 'attempts'));
create domain "@schema@".dispatch_state as text check (value in ('available', 'leased', 'suspended', 'terminal'));
create domain "@schema@".permit_outcome as text
    check (value in ('granted', 'known_succeeded', 'proven_no_effect', 'ambiguous'));
create domain "@schema@".history_details as jsonb check (octet_length(value::text) <= 16384);

-- The advisory lock of a scope: shared by every mutation in it, exclusive for disabling it. A row lock instead would
-- make disabling wait for ever on a busy scope.
create function "@schema@".scope_key(p_scope_id text) returns integer
language sql immutable strict parallel safe as $$ select hashtextextended(p_scope_id, 0)::bit(32)::integer $$;

create table "@schema@".scope (
    scope_id "@schema@".work_identifier primary key,
    generation bigint not null default 1 check (generation > 0),
    state text not null default 'active' check (state in ('active', 'disabled')),
    created_at timestamptz not null,
    disabled_at timestamptz,
    check ((state = 'disabled') = (disabled_at is not null))
);

create table "@schema@".scope_history (
    scope_id "@schema@".work_identifier not null,
    generation bigint not null,
    event text not null check (event in ('created', 'disabled')),
    command_id "@schema@".work_identifier,
    actor text not null check (actor <> ''),
    reason text,
    projected bigint not null default 0,                 -- how many items of Work the event moved
    at timestamptz not null,
    primary key (scope_id, generation)
);

create table "@schema@".work (
    work_id bigint generated always as identity primary key,
    -- The acceptance: never changes.
    scope_id "@schema@".work_identifier not null,
    activity_id uuid not null default gen_random_uuid(),  -- is also the provider's key
    command_id "@schema@".work_identifier not null,
    idempotency_key "@schema@".work_identifier not null,
    contract_name "@schema@".work_identifier not null,
    contract_version "@schema@".work_version not null,
    exit_aware boolean not null,
    codec "@schema@".work_identifier not null,
    classification "@schema@".work_identifier not null,
    retention_id "@schema@".work_identifier not null,
    payload_sha256 "@schema@".sha256_digest not null,
    safety text not null,
    retry_algorithm text not null,
    max_attempts integer not null,
    max_elapsed_us bigint not null,
    initial_delay_us bigint not null,
    max_delay_us bigint not null,
    lease_us bigint not null,
    renewal_us bigint not null,
    max_lease_us bigint not null,
    plan_version smallint,                               -- execution policy v1: null is none of it
    offsets_us bigint[],                                 -- fixed plan; null with a plan_version: deadline only
    circuit_us bigint,
    deadline timestamptz,
    due_at timestamptz,
    priority smallint not null default 0,
    fingerprint_schema smallint not null,
    fingerprint "@schema@".sha256_digest not null,
    accepted_at timestamptz not null,
    -- The life.
    state "@schema@".work_state not null default 'pending',
    revision bigint not null default 1,
    attempt integer not null default 0,
    authorized_attempts integer not null default 0,      -- granted by an operator beyond max_attempts
    lease_generation bigint not null default 0,
    scope_generation bigint not null,
    epoch bigint not null,
    lease_owner bigint,                                  -- a worker's incarnation
    lease_request bigint,                                -- the claim of it, so that a lost reply can be asked again
    lease_started_at timestamptz,
    lease_expires_at timestamptz,
    eligible_at timestamptz not null,                    -- of the next attempt
    cancel_requested_at timestamptz,
    code text collate "C",                               -- why it stands as it does: of ours or of the application
    execution_admission_closed_at timestamptz,           -- the two witnesses: first write wins, apart from each other
    execution_admission_closed_reason "@schema@".closed_reason,
    execution_deadline_reached_at timestamptz,
    terminal_at timestamptz,
    purged_at timestamptz,
    unique (scope_id, command_id),
    unique (scope_id, idempotency_key),
    unique (activity_id)
) with (fillfactor = 70);                                -- no index knows a column that changes: updates are HOT
create index ix_work_scope on "@schema@".work (scope_id, work_id);

-- Apart from work, so that its updates do not copy them, a reader can lack them, and a purge can take them.
create table "@schema@".work_payload (
    work_id bigint primary key,
    scope_id "@schema@".work_identifier not null,
    payload "@schema@".work_bytes not null
);
create table "@schema@".work_result (
    work_id bigint primary key,
    scope_id "@schema@".work_identifier not null,
    codec "@schema@".work_identifier not null,
    sha256 "@schema@".sha256_digest not null,
    result "@schema@".work_bytes                         -- null: purged
);

create table "@schema@".dispatch (
    dispatch_id bigint generated always as identity primary key,
    work_id bigint not null unique,
    scope_id "@schema@".work_identifier not null,
    contract_name "@schema@".work_identifier not null,
    contract_version "@schema@".work_version not null,
    state "@schema@".dispatch_state not null default 'available',
    due_at timestamptz not null,
    -- available: when it is due or can no longer run. leased: when the lease ends. terminal: since when.
    discover_at timestamptz not null,
    expected_revision bigint not null,                   -- in no index
    priority smallint not null
) with (fillfactor = 80);
create index ix_work_contract_dispatch_lookup on "@schema@".dispatch
    (contract_name, contract_version, discover_at, priority desc, dispatch_id) where state in ('available', 'leased');
create index ix_work_dispatch_unfinished on "@schema@".dispatch (scope_id, work_id) where state <> 'terminal';
create index ix_work_dispatch_suspended on "@schema@".dispatch (work_id) where state = 'suspended';
create index ix_work_dispatch_terminal on "@schema@".dispatch (discover_at) where state = 'terminal';

create table "@schema@".effect_permit (
    permit_id bigint generated always as identity primary key,
    work_id bigint not null,
    scope_id "@schema@".work_identifier not null,
    attempt integer not null,
    lease_generation bigint not null,
    scope_generation bigint not null,
    epoch bigint not null,
    lease_owner bigint not null,
    activity_id uuid not null,
    outcome "@schema@".permit_outcome not null default 'granted',
    granted_at timestamptz not null,
    invocation_admitted_at timestamptz,
    closed_at timestamptz,
    unique (work_id, attempt, lease_generation)
) with (fillfactor = 80);

create table "@schema@".work_history (
    history_id bigint generated always as identity primary key,
    work_id bigint not null,
    scope_id "@schema@".work_identifier not null,
    revision bigint not null,
    event text not null,
    from_state text,
    to_state text,
    attempt integer not null,
    lease_generation bigint not null,
    scope_generation bigint not null,
    epoch bigint not null,
    lease_owner bigint,
    command_id "@schema@".work_identifier,
    actor text not null default session_user,
    code text collate "C",
    application_code text collate "C",                   -- what the executor said, where the code is ours
    details "@schema@".history_details,
    -- A quarantined observation: what a stale completion claimed. It never changes Work.
    observation_sha256 "@schema@".sha256_digest,
    observation "@schema@".work_bytes,
    at timestamptz not null
);
create index ix_work_history_work on "@schema@".work_history (work_id, history_id);
create unique index ix_work_history_observation on "@schema@".work_history
    (work_id, attempt, lease_generation, scope_generation, epoch, lease_owner, event, observation_sha256)
    where observation_sha256 is not null;

create table "@schema@".operator_command (
    scope_id "@schema@".work_identifier not null,
    command_id "@schema@".work_identifier not null,
    operation text not null,
    fingerprint "@schema@".sha256_digest not null,
    work_id bigint,
    state text not null check (state in ('started', 'finished')),
    owner text,                                          -- who reconciles, until lease_expires_at
    lease_expires_at timestamptz,
    expected_revision bigint,
    permit_id bigint,
    outcome text,
    code text collate "C",
    revision bigint,
    to_state text,
    actor text not null check (actor <> ''),
    reason text,
    proof_sha256 "@schema@".sha256_digest,               -- of what the operator keeps as proof
    login text not null default session_user,
    created_at timestamptz not null,
    finished_at timestamptz,
    primary key (scope_id, command_id)
);
create index ix_work_operator_command_work on "@schema@".operator_command (work_id) where work_id is not null;

-- Work as readers see it: without payload and result. action: what an operator can do about it, or null.
create type "@schema@".work_view as (
    work_id bigint, scope_id text, state text, code text, action text, contract_name text, contract_version text,
    safety text, activity_id uuid, command_id text, idempotency_key text, revision bigint, attempt integer,
    unresolved integer, accepted_at timestamptz, due_at timestamptz, deadline timestamptz, eligible_at timestamptz,
    lease_owner bigint, lease_expires_at timestamptz, cancel_requested_at timestamptz, terminal_at timestamptz,
    purged_at timestamptz);

create function "@schema@".current_scope() returns text
language sql stable parallel safe as $$ select nullif(current_setting('onecommit.scope_id', true), '') $$;

-- Until when, in milliseconds, a worker sleeps that wants to be told of Work; outside MVCC, moved by setval only.
create sequence "@schema@".work_sleeper as bigint minvalue 0 start 0 cache 1;
select setval('"@schema@".work_sleeper', 0, true);

-- What is known of the permits of Work: the one of its current attempt that is still granted, whether that one may have
-- had an effect, and whether any other permit may have had one.
create type "@schema@".permit_sight as (granted bigint, admitted boolean, others boolean);

-- What an attempt or an operation leads to.
create type "@schema@".work_end as (
    state text, code text, eligible_at timestamptz, closed text, application_code text);

-- Set-once witnesses, immutable acceptance and terminal facts: for whoever may update the table at all.
create function "@schema@".guard_acceptance() returns trigger
language plpgsql as $$
begin
    raise exception 'the acceptance of Work cannot be changed' using errcode = '23514';
end $$;
-- By columns: an update that names none of them, as each on the hot path, does not pay for it.
create trigger guard_acceptance before update of
    work_id, scope_id, activity_id, command_id, idempotency_key, contract_name, contract_version, exit_aware, codec,
    classification, retention_id, payload_sha256, safety, retry_algorithm, max_attempts, max_elapsed_us, initial_delay_us,
    max_delay_us, lease_us, renewal_us, max_lease_us, plan_version, offsets_us, circuit_us, deadline, due_at, priority,
    fingerprint_schema, fingerprint, accepted_at
    on "@schema@".work for each row execute function "@schema@".guard_acceptance();

create function "@schema@".guard_work() returns trigger
language plpgsql as $$
begin
    if old.terminal_at is not null and to_jsonb(new) - 'purged_at' is distinct from to_jsonb(old) - 'purged_at' then
        raise exception 'terminal Work cannot be changed' using errcode = '23514';
    end if;
    if (old.execution_admission_closed_at is not null
            and (new.execution_admission_closed_at, new.execution_admission_closed_reason)
                is distinct from (old.execution_admission_closed_at, old.execution_admission_closed_reason))
        or (old.execution_deadline_reached_at is not null
            and new.execution_deadline_reached_at is distinct from old.execution_deadline_reached_at)
        or (old.cancel_requested_at is not null and new.cancel_requested_at is distinct from old.cancel_requested_at)
        or (old.purged_at is not null and new.purged_at is distinct from old.purged_at) then
        raise exception 'a witness of Work is written once' using errcode = '23514';
    end if;
    if (new.lease_owner is not null) <> (new.state in ('leased', 'effect_permitted', 'cancel_pending'))
        or (new.lease_owner is null) <> (new.lease_expires_at is null)
        or (new.terminal_at is not null) <> (new.state in
            ('succeeded', 'succeeded_after_cancel_requested', 'failed', 'canceled_before_effect')) then
        raise exception 'lease, terminal time and state of Work do not fit together' using errcode = '23514';
    end if;
    if new.revision < old.revision or new.attempt < old.attempt or new.lease_generation < old.lease_generation then
        raise exception 'revision, attempt and lease generation of Work only rise' using errcode = '23514';
    end if;
    return new;
end $$;
create trigger guard_work before update on "@schema@".work for each row execute function "@schema@".guard_work();

create function "@schema@".guard_permit() returns trigger
language plpgsql as $$
begin
    if (new.permit_id, new.work_id, new.scope_id, new.attempt, new.lease_generation, new.scope_generation,
        new.lease_owner, new.activity_id, new.granted_at)
        is distinct from
       (old.permit_id, old.work_id, old.scope_id, old.attempt, old.lease_generation, old.scope_generation,
        old.lease_owner, old.activity_id, old.granted_at)
        or (old.invocation_admitted_at is not null
            and new.invocation_admitted_at is distinct from old.invocation_admitted_at) then
        raise exception 'what a permit authorized, and its admission, cannot be changed' using errcode = '23514';
    end if;
    if old.outcome in ('known_succeeded', 'proven_no_effect') and new.outcome <> old.outcome then
        raise exception 'the known outcome of a permit cannot be changed' using errcode = '23514';
    end if;
    return new;
end $$;
create trigger guard_permit before update on "@schema@".effect_permit
    for each row execute function "@schema@".guard_permit();

-- Row-level security. Without a scope in the transaction no rows. A policy for `current_user` is for the owner of the
-- schema, as whom the definers run that look across scopes; provisioning can move the discovery to a role of its own.
do $rls$
declare
    v_table text;
begin
    foreach v_table in array array['scope', 'scope_history', 'work', 'work_payload', 'work_result', 'dispatch',
                                   'effect_permit', 'work_history', 'operator_command'] loop
        execute format('alter table "@schema@".%I enable row level security', v_table);
        execute format('alter table "@schema@".%I force row level security', v_table);
        execute format('create policy in_scope_select on "@schema@".%I for select using (scope_id = "@schema@".current_scope())', v_table);
        execute format('create policy in_scope_insert on "@schema@".%I for insert with check (scope_id = "@schema@".current_scope())', v_table);
        if v_table = 'scope' then
            -- A disabled scope is a tombstone: nobody makes it active again.
            execute 'create policy in_scope_update on "@schema@".scope for update
                using (scope_id = "@schema@".current_scope())
                with check (scope_id = "@schema@".current_scope() and state = ''disabled'')';
        elsif v_table not in ('scope_history', 'work_history', 'work_payload', 'work_result') then
            execute format('create policy in_scope_update on "@schema@".%I for update using (scope_id = "@schema@".current_scope())', v_table);
        end if;
        if v_table <> 'dispatch' then
            execute format('create policy owner_select on "@schema@".%I for select to current_user using (true)', v_table);
        end if;
    end loop;
    create policy work_contract_discovery_owner on "@schema@".dispatch for select to current_user using (true);
    -- A purge forgets bytes and what leads to them; the tombstone stays.
    create policy owner_delete on "@schema@".work_payload for delete to current_user using (scope_id = "@schema@".current_scope());
    create policy owner_update on "@schema@".work_result for update to current_user using (scope_id = "@schema@".current_scope());
    create policy owner_delete on "@schema@".dispatch for delete to current_user using (scope_id = "@schema@".current_scope());
    create policy owner_update on "@schema@".work_history for update to current_user using (scope_id = "@schema@".current_scope());
end $rls$;
