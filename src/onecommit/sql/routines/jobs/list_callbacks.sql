-- What waits for an answer from outside: the callbacks that are not resolved and still count, of one job, queue or kind
-- (nulls: of any), of at most p_limit jobs, the newest first, below p_before. Their ids are left out: whoever knows one
-- may resolve it. awaited: the handler waits for it. For reader. Read-only. Raises 22023.
create or replace function "@schema@".list_callbacks(p_job_id bigint, p_queue text, p_kind text, p_limit integer, p_before bigint)
returns table (job_id bigint, queue text, kind text, state text, attempt integer, name text, awaited boolean,
    registered_at timestamptz, timeout_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception 'limit: must be 1 to 1000' using errcode = '22023';
    end if;
    return query
        with waiting as materialized (
            select c.* from "@schema@".callback c
            left join "@schema@".lease l on l.job_id = c.job_id and l.run_lease = c.run_lease
            where c.resolution is null and (p_job_id is null or c.job_id = p_job_id) and (p_before is null or c.job_id < p_before)
              -- Without a name it ends with its attempt.
              and (c.name is not null or l.job_id is not null)
              -- By the lease where there is one, which spares most look-ups.
              and (p_queue is null or coalesce(l.queue, p_queue) = p_queue) and (p_kind is null or coalesce(l.kind, p_kind) = p_kind)
        ), jobs as materialized (
            select v.job_id, v.queue, v.kind, v.state, v.attempt
            from (select distinct c.job_id from waiting c order by c.job_id desc) n
            cross join lateral "@schema@".get_job(n.job_id) v
            where v.outcome is null and (p_queue is null or v.queue = p_queue) and (p_kind is null or v.kind = p_kind)
            order by n.job_id desc limit p_limit
        )
        select j.job_id, j.queue, j.kind, j.state, j.attempt, c.name, c.awaited, c.registered_at, c.timeout_at
        from jobs j join waiting c on c.job_id = j.job_id
        order by j.job_id desc, c.registered_at, c.timeout_at;
end $$;
