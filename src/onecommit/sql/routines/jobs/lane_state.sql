-- Where the lane's claims stand: carried by its newest claim row, or saved in lane when that row was truncated.
-- Internal. Exact only under the lane lock, in a statement begun after it was taken.
create or replace function "@schema@".lane_state(p_lane smallint,
    out frontier bigint, out old_holes int8multirange, out new_holes int8multirange, out label bigint, out settled bigint)
language plpgsql stable as $$
begin
    select c.frontier, c.old_holes, c.new_holes, c.label, c.settled into frontier, old_holes, new_holes, label, settled
    from "@schema@".claim c where c.lane = p_lane order by c.batch_id desc limit 1;
    if not found then
        select l.frontier, l.old_holes, l.new_holes, l.label, l.settled into frontier, old_holes, new_holes, label, settled
        from "@schema@".lane l where l.lane = p_lane;
    end if;
end $$;
