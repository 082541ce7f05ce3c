-- Jobs of one state (null: of any), newest id first, below p_before; arguments and details are left out. A job with
-- several closed attempts in the ring is listed once, as it stands. For reader. Read-only. Raises 22023.
create or replace function "@schema@".list_jobs(p_state text, p_queue text, p_kind text, p_limit integer, p_before bigint)
returns setof "@schema@".job_view
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
begin
    if p_state not in ('blocked', 'scheduled', 'ready', 'running', 'waiting', 'completed', 'cancelled', 'dead') then
        raise exception 'state: must be blocked, scheduled, ready, running, waiting, completed, cancelled or dead' using errcode = '22023';
    end if;
    return query
        select v.job_id, v.state, v.queue, v.priority, v.kind, v.attempt, v.max_attempts, v.run_lease, v.created_at, v.run_at,
               v.finished_at, v.outcome, v.code, null::text, null::text, null::text, null::text, v.parent_id
        from "@schema@".find_jobs(array[p_state], p_queue, p_kind, null, p_limit, p_before) v;
end $$;
