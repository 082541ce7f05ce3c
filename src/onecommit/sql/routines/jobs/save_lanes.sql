-- Guarantee: a lane whose newest claim row lies in the slot has its state saved in lane, under its lock, which is kept
-- until the truncation commits; so a claim reads either the claim row or the saved state. False: a claim is in flight.
-- Internal. Locks: lanes (try).
create or replace function "@schema@".save_lanes(p_slot smallint) returns boolean
language plpgsql as $$
declare
    v_lane smallint;
begin
    for v_lane in
        select l.lane from "@schema@".lane l
        where (select c.slot from "@schema@".claim c where c.lane = l.lane order by c.batch_id desc limit 1) = p_slot
        order by l.lane
    loop
        if not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".lane'), v_lane) then
            return false;
        end if;
        -- Read under the lock, in a new statement: it may have moved on, and then nothing needs saving.
        update "@schema@".lane l
        set frontier = n.frontier, old_holes = n.old_holes, new_holes = n.new_holes, label = n.label, settled = n.settled
        from (select c.* from "@schema@".claim c where c.lane = v_lane order by c.batch_id desc limit 1) n
        where l.lane = v_lane and n.slot = p_slot;
    end loop;
    return true;
end $$;
