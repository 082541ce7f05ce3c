-- Every incarnation that is alive or has open claims. For reader. Read-only.
create or replace function "@schema@".list_workers()
returns table (worker bigint, name text, info jsonb, epoch bigint, started_at timestamptz, heartbeat_at timestamptz, ended_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select w.worker, w.name, w.info, w.epoch, w.started_at, w.heartbeat_at, w.ended_at from "@schema@".worker w order by w.worker
$$;
