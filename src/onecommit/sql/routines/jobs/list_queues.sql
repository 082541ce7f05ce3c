-- Every queue with its lanes and counts. ready and running are counted, so this reads the open part of the ring.
-- For reader. Read-only.
create or replace function "@schema@".list_queues()
returns table (queue text, paused boolean, lanes integer, ready bigint, scheduled bigint, dead bigint, running bigint, caller_owned boolean, blocked bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        with open as (
            select l.queue, r.seq <= s.frontier and not r.seq <@ (s.old_holes + s.new_holes) as claimed
            from "@schema@".lane l
            cross join lateral "@schema@".lane_state(l.lane) s
            join "@schema@".ready r on r.lane = l.lane
            where l.queue is not null and not exists (
                select from "@schema@".completion c where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq offset 0)
        ), counted as (
            select o.queue, count(*) filter (where not o.claimed) as ready, count(*) filter (where o.claimed) as running
            from open o group by o.queue
        )
        select q.queue, q.paused, (select count(*)::integer from "@schema@".lane l where l.queue = q.queue),
               coalesce(n.ready, 0), (select count(*) from "@schema@".scheduled s where s.queue = q.queue),
               (select count(*) from "@schema@".dead_letter d where d.queue = q.queue),
               coalesce(n.running, 0) + (select count(*) from "@schema@".lease l where l.queue = q.queue),
               exists (select from "@schema@".caller_owned_queue e where e.queue = q.queue and e.enabled_at is not null),
               (select count(*) from "@schema@".dependant d where d.queue = q.queue)
        from "@schema@".queue q left join counted n on n.queue = q.queue
        order by q.queue;
end $$;
