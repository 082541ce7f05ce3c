-- Guarantee: (queue, priority) has a lane of its own, taken from the pool. Internal.
-- Locks: the queue row, so that two adopters agree. Raises OC007 when the pool is empty, 22023.
create or replace function "@schema@".adopt_lane(p_queue text, p_priority integer) returns smallint
language plpgsql as $$
declare
    v_lane smallint;
begin
    if coalesce(p_queue, '') = '' or length(p_queue) > 200 then
        raise exception 'queue: the name must have 1 to 200 characters' using errcode = '22023';
    end if;
    if p_priority is null or p_priority not between 1 and 4 then
        raise exception 'priority: must be 1, 2, 3 or 4' using errcode = '22023';
    end if;
    insert into "@schema@".queue (queue) values (p_queue) on conflict do nothing;
    perform from "@schema@".queue q where q.queue = p_queue for update;
    select l.lane into v_lane from "@schema@".lane l where l.queue = p_queue and l.priority = p_priority and l.shard = 0;
    if found then
        return v_lane;
    end if;
    update "@schema@".lane l set queue = p_queue, priority = p_priority
    where l.lane = (select f.lane from "@schema@".lane f where f.queue is null and f.lane > 0
                    order by f.lane limit 1 for update skip locked)
    returning l.lane into v_lane;
    if not found then
        raise exception 'no free lane is left for this queue and priority' using errcode = 'OC007',
            hint = 'Run: onecommit lanes add';
    end if;
    -- Whoever sleeps on the queue marked the lanes that it had then.
    perform setval(n.sleeper_seq, max(pg_sequence_last_value(l.sleeper_seq)), true)
    from "@schema@".lane n join "@schema@".lane l on l.queue = n.queue and l.lane <> n.lane
    where n.lane = v_lane
    group by n.sleeper_seq
    having max(pg_sequence_last_value(l.sleeper_seq)) > 0;
    return v_lane;
end $$;
