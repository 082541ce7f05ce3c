-- Every lane of a queue: how many live workers serve it, when it was last claimed from, its first job that waits (number,
-- enqueued_at), in how many ranges numbers below the frontier are missing, and which server processes may still fill the
-- older ones (0: a prepared transaction). For reader. Read-only.
create or replace function "@schema@".lane_health()
returns table (lane integer, queue text, priority integer, paused boolean, workers integer, claimed_at timestamptz,
    waiting_number bigint, waiting_since timestamptz, holes integer, writers integer[])
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select l.lane::integer, l.queue, l.priority::integer, q.paused,
               (select count(*)::integer from "@schema@".worker w where w.ended_at is null and w.info -> 'queues' ? l.queue),
               (select c.claimed_at from "@schema@".claim c where c.lane = l.lane order by c.batch_id desc limit 1),
               f.seq, f.created_at, (select count(*)::integer from unnest(s.old_holes + s.new_holes)),
               array(select coalesce(a.pid, 0) from pg_catalog.pg_locks a
                     where a.locktype = 'advisory' and a.granted and a.mode = 'ShareLock' and a.objsubid = 2
                       and a.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
                       and a.classid = '"@schema@".ready'::regclass::oid and s.old_holes <> '{}'
                       and a.objid::bigint in (select "@schema@".generation_key(l.lane, g) from generate_series(s.settled + 1, s.label) g)
                     order by 1)
        from "@schema@".lane l
        join "@schema@".queue q on q.queue = l.queue
        cross join lateral "@schema@".lane_state(l.lane) s
        left join lateral (
            select r.seq, r.created_at from "@schema@".ready r
            where r.lane = l.lane and r.seq > s.frontier and not exists (
                select from "@schema@".completion c where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq offset 0)
            order by r.seq limit 1
        ) f on true
        order by l.lane;
end $$;
