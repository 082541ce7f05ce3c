-- Dependants: jobs that wait for another job's end, and ends whose dependants are left for the leader.

create table "@schema@".dependant (
    job_id bigint primary key,
    parent_id bigint not null,
    on_parent_failure text not null check (on_parent_failure in ('cancel', 'enqueue', 'discard')),
    run_at timestamptz,                             -- not before, also when the parent has ended
    queue text not null,
    priority smallint not null,
    created_at timestamptz not null,
    max_attempts smallint not null,
    kind text not null,
    args json not null,
    options jsonb not null,                         -- says who the parent is
    look_at timestamptz,                            -- when the leader asks whether the parent's end was missed; null: it cannot be
    horizon xid8                                    -- every transaction that could miss this row has a lower number
);
create index dependant_by_parent on "@schema@".dependant (parent_id, job_id);
create index dependant_by_look on "@schema@".dependant (look_at) where look_at is not null;

-- An end that a closing transaction records without releasing (all of) the dependants.
create table "@schema@".parent_end (
    job_id bigint primary key,
    outcome text,                                   -- null: unknown, its history is gone
    code text
);

-- 1 once a dependant was ever enqueued, and never 0 again: until then closers do not look for any.
create sequence "@schema@".dependant_mark as bigint minvalue 0 cache 1;
select setval('"@schema@".dependant_mark', 0, true);
