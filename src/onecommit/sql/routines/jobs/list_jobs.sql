-- Jobs of one state (null: of any), newest id first, below p_before; arguments and details are left out. A job with
-- several closed attempts in the ring is listed once, as it stands. For reader. Read-only. Raises 22023.
create or replace function "@schema@".list_jobs(p_state text, p_queue text, p_kind text, p_limit integer, p_before bigint)
returns setof "@schema@".job_view
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception 'limit: must be 1 to 1000' using errcode = '22023';
    end if;
    if p_state not in ('blocked', 'scheduled', 'ready', 'running', 'waiting', 'completed', 'cancelled', 'dead') then
        raise exception 'state: must be blocked, scheduled, ready, running, waiting, completed, cancelled or dead' using errcode = '22023';
    end if;
    return query
        select v.job_id, v.state, v.queue, v.priority, v.kind, v.attempt, v.max_attempts, v.run_lease, v.created_at, v.run_at,
               v.finished_at, v.outcome, v.code, null::text, null::text, null::text, null::text, v.parent_id
        from "@schema@".job_candidates(p_state, p_queue, p_kind, p_before) n
        cross join lateral "@schema@".get_job(n.job_id) v
        where (p_state is null or v.state = p_state)
        order by v.job_id desc limit p_limit;
end $$;
