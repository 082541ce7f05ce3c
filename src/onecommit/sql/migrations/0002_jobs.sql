-- The job engine: one ring of chapters, three append-only families, and mutable side tables off the hot path.

create function "@schema@".ring_slot(p_chapter integer) returns smallint
language sql immutable strict parallel safe as $$ select (p_chapter % 6)::smallint $$;

-- Advisory locks use the two-int form; the class is the oid of one of our tables, so that they cannot meet an
-- application's own locks. store_metadata: the schema lock. lane: one claimer a lane. ready: number generations.
-- claim: one claim request. worker: an incarnation's claims against its rescue. completion: one attempt.
-- caller_owned_queue: a queue's enablement against the registration of a worker that lacks the capability.
create function "@schema@".lock_class(p_relation regclass) returns integer
language sql immutable strict parallel safe as $$ select (p_relation::oid::bigint)::bit(32)::integer $$;

create function "@schema@".generation_key(p_lane smallint, p_generation bigint) returns integer
language sql immutable strict parallel safe as
$$ select (p_lane::integer << 21) | (p_generation & 2097151)::integer $$;

create function "@schema@".attempt_key(p_job_id bigint, p_run_lease bigint) returns integer
language sql immutable strict parallel safe as $$ select hashint8extended(p_job_id, p_run_lease)::bit(32)::integer $$;

-- The fence sequences are read by last_value and moved by setval only, like epoch_fence.
-- head_fence: the current chapter. tail_fence: the oldest chapter whose rows may still be closed.
create sequence "@schema@".head_fence as bigint minvalue 0 cache 1;
create sequence "@schema@".tail_fence as bigint minvalue 0 cache 1;
select setval('"@schema@".head_fence', 1, true), setval('"@schema@".tail_fence', 1, true);

create sequence "@schema@".job_number as bigint cache 1;
create sequence "@schema@".batch_number as bigint cache 1;
create sequence "@schema@".worker_number as bigint cache 1;

create table "@schema@".ring (
    singleton boolean primary key default true check (singleton),
    reclaimed integer not null default 0,           -- the last chapter whose three children were truncated
    chapter_lifetime interval not null default '30 minutes' check (chapter_lifetime > '0'),
    chapter_rows bigint not null default 2000000 check (chapter_rows > 0),
    retention interval not null default '1 hour' check (retention >= '0'),          -- how long a closed chapter is kept
    retention_floor interval not null default '5 minutes' check (retention_floor >= '0'), -- when its slot is needed
    evacuate_after interval not null default '30 minutes' check (evacuate_after >= '0')
);
insert into "@schema@".ring default values;

create table "@schema@".chapter (
    chapter integer primary key,
    opened_at timestamptz not null default clock_timestamp(),
    closed_at timestamptz
);
insert into "@schema@".chapter (chapter) values (1);

create table "@schema@".queue (
    queue text primary key check (queue <> '' and length(queue) <= 200),
    paused boolean not null default false,
    aging interval not null default '60 seconds' check (aging > '0'),
    created_at timestamptz not null default clock_timestamp()
);

-- A lane is (queue, priority, shard) with its own number sequence. Lane 0 is history only.
-- The settlement columns hold the lane's state when the claim row that carried it is truncated.
create table "@schema@".lane (
    lane smallint primary key check (lane between 0 and 1023),
    queue text references "@schema@".queue (queue),
    priority smallint check (priority between 1 and 4),
    shard smallint not null default 0,
    number_seq regclass not null,
    generation_seq regclass not null,
    sleeper_seq regclass not null,
    frontier bigint not null default 0,
    old_holes int8multirange not null default '{}',
    new_holes int8multirange not null default '{}',
    label bigint not null default 0,
    settled bigint not null default 0,
    unique (queue, priority, shard)
);

create table "@schema@".ready (
    slot smallint not null,
    lane smallint not null,
    chapter integer not null,
    seq bigint not null,
    job_id bigint not null,
    created_at timestamptz not null,
    run_lease integer not null,                     -- of the last attempt; the claim hands out the next
    attempt smallint not null,                      -- attempts used up so far
    max_attempts smallint not null,
    kind text not null,
    args json not null,
    options jsonb,
    primary key (lane, seq, slot)                   -- in this order a lane is read in order of seq without a sort
) partition by list (slot);

create table "@schema@".claim (
    slot smallint not null,
    lane smallint not null,
    receipt_id bigint not null,
    batch_id bigint not null,
    worker bigint not null,
    request bigint not null,
    epoch bigint not null,
    claimed_at timestamptz not null,
    deadline timestamptz,
    frontier bigint not null,
    label bigint not null,
    settled bigint not null,
    old_holes int8multirange not null,
    new_holes int8multirange not null,
    chapters integer[] not null,
    seqs bigint[] not null,
    job_ids bigint[] not null,
    run_leases integer[] not null,
    primary key (slot, batch_id)
) partition by list (slot);
create index claim_by_lane on "@schema@".claim (lane, batch_id);
create index claim_by_worker on "@schema@".claim (worker, request);

create type "@schema@".outcome as enum (
    'completed', 'retried', 'snoozed', 'failed', 'discarded', 'cancelled', 'rescued', 'moved', 'materialized');

-- The primary key is the fence: whoever inserts it has decided the attempt.
create table "@schema@".completion (
    slot smallint not null,
    lane smallint not null,
    outcome "@schema@".outcome not null,
    seq bigint not null,
    finished_at timestamptz not null,
    detail json,
    primary key (lane, seq, slot)
) partition by list (slot);

-- Nothing in the children is updated or deleted, and they are truncated whole: vacuuming them after inserts would only
-- cost I/O and stand in the way of the truncation.
do $$
begin
    for s in 0..5 loop
        execute format('create table %1$I.ready_%2$s partition of %1$I.ready for values in (%2$s)'
            ' with (autovacuum_vacuum_insert_threshold = -1)', '@schema@', s);
        execute format('create table %1$I.claim_%2$s partition of %1$I.claim for values in (%2$s)'
            ' with (autovacuum_vacuum_insert_threshold = -1)', '@schema@', s);
        execute format('create table %1$I.completion_%2$s partition of %1$I.completion for values in (%2$s)'
            ' with (autovacuum_vacuum_insert_threshold = -1)', '@schema@', s);
        -- First attempts are numbered in order, so BRIN finds them; retried and promoted rows are out of order.
        execute format('create index ready_%2$s_first on %1$I.ready_%2$s using brin (job_id)'
            ' with (autosummarize = on, pages_per_range = 32)', '@schema@', s);
        execute format('create index ready_%2$s_again on %1$I.ready_%2$s (job_id) where run_lease > 0', '@schema@', s);
    end loop;
end $$;

create table "@schema@".scheduled (
    job_id bigint primary key,
    run_at timestamptz not null,
    queue text not null,
    priority smallint not null,
    created_at timestamptz not null,
    run_lease integer not null,
    attempt smallint not null,
    max_attempts smallint not null,
    kind text not null,
    args json not null,
    options jsonb
);
create index scheduled_due on "@schema@".scheduled (run_at, job_id);

create table "@schema@".dead_letter (
    job_id bigint primary key,
    died_at timestamptz not null,
    outcome "@schema@".outcome not null,
    code text,
    detail json,
    queue text not null,
    priority smallint not null,
    created_at timestamptz not null,
    run_lease integer not null,
    attempt smallint not null,
    max_attempts smallint not null,
    kind text not null,
    args json not null,
    options jsonb
);
create index dead_letter_by_age on "@schema@".dead_letter (died_at, job_id);

-- The mutable authority of an attempt that would otherwise pin the ring.
create table "@schema@".lease (
    job_id bigint primary key,
    run_lease integer not null,                     -- of this attempt
    claim_slot smallint not null,
    receipt_id bigint not null,
    batch_id bigint not null,
    batch_index integer not null,
    epoch bigint not null,
    worker bigint not null,
    claimed_at timestamptz not null,
    deadline timestamptz,
    queue text not null,
    priority smallint not null,
    created_at timestamptz not null,
    attempt smallint not null,                      -- attempts used up before this one
    max_attempts smallint not null,
    kind text not null,
    args json not null,
    options jsonb
);
create index lease_by_worker on "@schema@".lease (worker);

-- Ready rows closed before any claim saw them: a claim passes over them but counts them as seen.
create table "@schema@".pre_closed (
    lane smallint not null,
    seq bigint not null,
    chapter integer not null,
    primary key (lane, seq)
);
create index pre_closed_by_chapter on "@schema@".pre_closed (chapter);

create table "@schema@".unique_key (
    key bytea primary key,
    job_id bigint not null,
    held boolean not null default true,             -- the job has not ended
    keep_until timestamptz                          -- the window; null: until the job ends
);
create index unique_key_by_job on "@schema@".unique_key (job_id);

create table "@schema@".progress (
    job_id bigint primary key,
    run_lease integer not null,
    data json not null,
    updated_at timestamptz not null
) with (fillfactor = 70);

create table "@schema@".worker (
    worker bigint primary key,
    name text not null,
    info jsonb not null,
    epoch bigint not null,
    started_at timestamptz not null,
    heartbeat_at timestamptz not null,
    oldest_request bigint not null default 1,
    ended_at timestamptz,                           -- retired or declared dead; the row outlives its open claims
    caller_owned boolean not null generated always as (coalesce(info -> 'capabilities' ? 'caller_owned_v1', false)) stored
) with (fillfactor = 70);

-- 1 until a worker without the capability is first registered or an operator first disables a queue: nothing has to be
-- looked up before. Moved by setval only; it survives the rollback of that call, and then only costs a look-up.
create sequence "@schema@".caller_owned_fence as bigint minvalue 0 start 1 cache 1;
select setval('"@schema@".caller_owned_fence', 1, true);

-- Queues that accept caller-owned completion, and those that an operator has disabled: workers enable only a queue
-- without a row. Apart from queue, whose rows producers may lock for long.
create table "@schema@".caller_owned_queue (
    queue text primary key,
    enabled_at timestamptz,
    disabled_at timestamptz,
    check (num_nonnulls(enabled_at, disabled_at) = 1)
);

create table "@schema@".leader (
    singleton boolean primary key default true check (singleton),
    worker bigint,
    until timestamptz not null default '-infinity'
) with (fillfactor = 50);
insert into "@schema@".leader default values;

create table "@schema@".cancellation (
    job_id bigint not null,
    run_lease integer not null,
    at timestamptz not null,
    primary key (job_id, run_lease)
);

create type "@schema@".claimed_batch as (
    status text, lane smallint, claim_slot integer, batch_id bigint, receipt_id bigint,
    claimed_at timestamptz, deadline timestamptz,
    chapters integer[], seqs bigint[], job_ids bigint[], run_leases bigint[],
    attempts integer[], max_attempts integer[], kinds text[], args text[], options text[], created_at timestamptz[]
);

create type "@schema@".closing_verdict as (item integer, verdict text);

-- Extended by alter type, so that complete_job keeps its signature and its grants.
create type "@schema@".finalization_receipt as (
    contract_version integer, job_id bigint, run_lease bigint,
    claim_slot integer, receipt_id bigint, batch_id bigint, batch_index integer,
    outcome text, finished_at timestamptz, transaction_id bigint
);

create type "@schema@".job_view as (
    job_id bigint, state text, queue text, priority integer, kind text,
    attempt integer, max_attempts integer, run_lease bigint,
    created_at timestamptz, run_at timestamptz, finished_at timestamptz,
    outcome text, code text, args text, options text, progress text, detail text, parent_id bigint
);

-- Lanes come from a pool, because runtime functions run no DDL.
do $$
begin
    for n in 0..64 loop
        execute format('create sequence %1$I.lane_%2$s_number as bigint cache 1', '@schema@', n);
        execute format('create sequence %1$I.lane_%2$s_generation as bigint cache 1', '@schema@', n);
        execute format('create sequence %1$I.lane_%2$s_sleeper as bigint minvalue 0 start 0 cache 1', '@schema@', n);
        insert into "@schema@".lane (lane, number_seq, generation_seq, sleeper_seq)
        values (n, format('%I.lane_%s_number', '@schema@', n)::regclass, format('%I.lane_%s_generation', '@schema@', n)::regclass,
                format('%I.lane_%s_sleeper', '@schema@', n)::regclass);
        perform setval(l.generation_seq, 1), setval(l.sleeper_seq, 0) from "@schema@".lane l where l.lane = n;
    end loop;
end $$;
