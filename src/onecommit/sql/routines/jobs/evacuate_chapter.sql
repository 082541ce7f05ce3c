-- Guarantee: what pins the oldest chapter moves out of it, up to 500 rows a step: waiting rows of a queue that is paused
-- or has no worker are closed as moved and wait in the current chapter, lease and attempt unchanged; attempts that run
-- for long are materialized. Internal, for the one tender. Locks: lane (try) or attempts (try).
create or replace function "@schema@".evacuate_chapter() returns table (action text, chapter integer)
language plpgsql as $$
#variable_conflict use_column
declare
    v_head constant integer := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    v_ring "@schema@".ring;
    v_oldest integer;
    v_lane "@schema@".lane;
    v_moved integer := 0;
begin
    select * into v_ring from "@schema@".ring r;
    v_oldest := v_ring.reclaimed + 1;
    if v_oldest >= v_head or exists (
        select from "@schema@".chapter c where c.chapter = v_oldest
        and c.closed_at > "@schema@".store_now() - v_ring.evacuate_after) then
        return;
    end if;
    for v_lane in
        select l.* from "@schema@".lane l join "@schema@".queue q on q.queue = l.queue
        where q.paused or not exists (
            select from "@schema@".worker w where w.ended_at is null and w.info -> 'queues' ? q.queue)
        order by l.lane
    loop
        v_moved := v_moved + "@schema@".move_waiting(v_lane.lane, v_lane.queue, v_lane.priority, "@schema@".ring_slot(v_oldest), 500 - v_moved);
        exit when v_moved >= 500;
    end loop;
    if v_moved < 500 then
        v_moved := v_moved + "@schema@".materialize_long_open("@schema@".ring_slot(v_oldest), 500 - v_moved);
    end if;
    if v_moved > 0 then
        return query select 'evacuate', v_oldest;
    end if;
end $$;
