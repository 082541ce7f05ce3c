-- The queue's lanes, first priority first; a lane gains a priority for each aging interval that its head has waited.
-- Internal. For queues with several lanes: the wait of each is looked up.
create or replace function "@schema@".lanes_in_order(p_queue text, p_now timestamptz) returns setof "@schema@".lane
language plpgsql stable as $$
begin
    return query
        select l.*
        from "@schema@".lane l
        join "@schema@".queue q on q.queue = l.queue
        left join lateral (
            select r.created_at from "@schema@".ready r
            where r.lane = l.lane and r.seq > (select s.frontier from "@schema@".lane_state(l.lane) s)
            order by r.seq limit 1
        ) head on true
        where l.queue = p_queue
        order by l.priority - floor(coalesce(extract(epoch from p_now - head.created_at), 0) / extract(epoch from q.aging)),
                 l.priority, l.shard;
end $$;
