-- Ids of jobs that have not finished, in one of the states (null: in any of them), of the queue and kind (null: of any)
-- and with all of the tags (null: any), newest first, below p_before. For operator, who cancels them. Read-only. Raises 22023.
create or replace function "@schema@".unfinished_jobs(p_states text[], p_queue text, p_kind text, p_tags text[], p_limit integer, p_before bigint)
returns table (job_id bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
declare
    v_all constant text[] := '{blocked,scheduled,ready,running,waiting}';
begin
    if not coalesce(p_states, v_all) <@ v_all then
        raise exception 'states: must be blocked, scheduled, ready, running or waiting' using errcode = '22023';
    end if;
    return query
        select v.job_id from "@schema@".find_jobs(coalesce(p_states, v_all), p_queue, p_kind, p_tags, p_limit, p_before) v;
end $$;
