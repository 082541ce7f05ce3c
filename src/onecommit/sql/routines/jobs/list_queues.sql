-- Every queue with its lanes and counts. ready and running are counted, so this reads what waits, from the frontier of each
-- lane on, and the claims that a worker has open; not the ring. For reader. Read-only.
create or replace function "@schema@".list_queues()
returns table (queue text, paused boolean, lanes integer, ready bigint, scheduled bigint, dead bigint, running bigint, caller_owned boolean, blocked bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
    return query
        with lanes as materialized (
            select l.lane, l.queue, s.frontier, s.old_holes + s.new_holes as holes
            from "@schema@".lane l cross join lateral "@schema@".lane_state(l.lane) s where l.queue is not null
        ), waiting as (
            select l.queue, sum(n.n)::bigint as n
            from lanes l
            cross join lateral (
                select count(*) as n from "@schema@".ready r
                where r.lane = l.lane and r.seq >= least(l.frontier + 1, lower(l.holes)) and (r.seq > l.frontier or r.seq <@ l.holes)
                  and not exists (
                    select from "@schema@".completion c where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq offset 0)
            ) n
            group by l.queue
        ), running as (
            select l.queue, sum(a.attempts)::bigint as n
            from "@schema@".running_attempts() a join lanes l on l.lane = a.lane
            group by l.queue
        )
        select q.queue, q.paused, (select count(*)::integer from "@schema@".lane l where l.queue = q.queue),
               coalesce(n.n, 0), (select count(*) from "@schema@".scheduled s where s.queue = q.queue),
               (select count(*) from "@schema@".dead_letter d where d.queue = q.queue),
               coalesce(u.n, 0) + (select count(*) from "@schema@".lease l where l.queue = q.queue),
               exists (select from "@schema@".caller_owned_queue e where e.queue = q.queue and e.enabled_at is not null),
               (select count(*) from "@schema@".dependant d where d.queue = q.queue)
        from "@schema@".queue q left join waiting n on n.queue = q.queue left join running u on u.queue = q.queue
        order by q.queue;
end $$;
