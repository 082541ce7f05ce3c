-- Callbacks: what an attempt waits for from outside of the store. The attempt itself is a lease meanwhile.

create table "@schema@".callback (
    callback_id uuid primary key,                   -- unguessable: whoever knows it may resolve the callback
    job_id bigint not null,
    run_lease integer not null,                     -- of the attempt that registered it, last if it has a name
    name text check (length(name) between 1 and 200),   -- a later attempt that registers it finds it; null: it ends with its attempt
    registered_at timestamptz not null,
    timeout_at timestamptz not null,
    awaited boolean not null default false,         -- the handler waits, or has waited
    resolution text check (resolution in ('resumed', 'completed', 'failed', 'retried', 'timed_out')),
    resolved_at timestamptz,
    payload json,
    ended boolean not null default false,           -- the resolution has ended the attempt that run_lease says
    check ((resolution is null) = (resolved_at is null))
);
create index callback_by_job on "@schema@".callback (job_id);
create unique index callback_by_name on "@schema@".callback (job_id, name) where name is not null;
create index callback_due on "@schema@".callback (timeout_at) where resolution is null;
create index callback_old on "@schema@".callback (resolved_at) where resolution is not null;
