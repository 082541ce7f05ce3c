-- Jobs of one state (null: of any), newest id first, below p_before; arguments and details are left out. A job with
-- several closed attempts in the ring is listed once, as it stands. For reader. Read-only. Raises 22023.
-- It looks back from the newest id in growing steps until it has enough, except for states that are found without the ring.
create or replace function "@schema@".list_jobs(p_state text, p_queue text, p_kind text, p_limit integer, p_before bigint)
returns setof "@schema@".job_view
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
declare
    v_before bigint := least(p_before, coalesce(pg_sequence_last_value('"@schema@".job_number'::regclass), 0) + 1);
    v_step bigint := 4 * p_limit;
    v_left integer := p_limit;
    v_found integer;
begin
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception 'limit: must be 1 to 1000' using errcode = '22023';
    end if;
    if p_state not in ('blocked', 'scheduled', 'ready', 'running', 'waiting', 'completed', 'cancelled', 'dead') then
        raise exception 'state: must be blocked, scheduled, ready, running, waiting, completed, cancelled or dead' using errcode = '22023';
    end if;
    if p_state in ('running', 'cancelled') then
        v_step := v_before;
    end if;
    while v_left > 0 and v_before > 0 loop
        return query
            select v.job_id, v.state, v.queue, v.priority, v.kind, v.attempt, v.max_attempts, v.run_lease, v.created_at, v.run_at,
                   v.finished_at, v.outcome, v.code, null::text, null::text, null::text, null::text, v.parent_id
            from "@schema@".jobs_between(p_state, p_queue, p_kind, v_before - v_step, v_before) n
            cross join lateral "@schema@".get_job(n.job_id) v
            where (p_state is null or v.state = p_state)
            order by n.job_id desc limit v_left;
        get diagnostics v_found = row_count;
        v_left := v_left - v_found;
        v_before := v_before - v_step;
        v_step := 4 * v_step;
    end loop;
end $$;
