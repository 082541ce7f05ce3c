-- The store: identity, migration history, runtime epochs. Everything else hangs on it.

create table "@schema@".store_metadata (
    singleton boolean primary key default true check (singleton),
    store_id uuid not null default gen_random_uuid(),
    -- complete_job refuses a transaction older than this: a finalizing transaction is short. It does not read this for
    -- a transaction of less than a second.
    finalization_max_age interval not null default '1 minute' check (finalization_max_age >= '1 second'),
    created_at timestamptz not null default clock_timestamp()
);
insert into "@schema@".store_metadata default values;

create table "@schema@".schema_migration (
    version integer primary key check (version > 0),
    name text not null,
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    applied_at timestamptz not null default clock_timestamp(),
    applied_by text not null default session_user
);

create table "@schema@".routine_install (
    singleton boolean primary key default true check (singleton),
    package_version text not null,
    routines_sha256 text not null,
    installed_at timestamptz not null default clock_timestamp()
);

create table "@schema@".runtime_epoch_history (
    epoch bigint primary key check (epoch > 0),
    previous bigint,
    actor text not null check (actor <> ''),
    reason text not null check (reason <> ''),
    activated_at timestamptz not null default clock_timestamp()
);

-- Read by last_value, outside MVCC, so that a REPEATABLE READ caller cannot see an old epoch.
-- Moved by setval only: nextval logs 32 ahead and a crash would jump it. 0 means not initialised.
create sequence "@schema@".epoch_fence as bigint minvalue 0 start 0 cache 1;
select setval('"@schema@".epoch_fence', 0, true);

create table "@schema@".operator_action (
    action_id bigint generated always as identity primary key,
    action text not null,
    subject text not null,
    actor text not null check (actor <> ''),
    reason text not null check (reason <> ''),
    at timestamptz not null default clock_timestamp()
);
