-- How many open attempts of the slot's ready rows were materialized, at most p_limit. Internal.
create or replace function "@schema@".materialize_long_open(p_slot smallint, p_limit integer) returns integer
language plpgsql as $$
declare
    v_item record;
    v_count integer := 0;
begin
    for v_item in
        select c.slot, c.batch_id, i.n
        from "@schema@".claim c
        cross join lateral unnest(c.chapters, c.seqs) with ordinality i (chapter, seq, n)
        where "@schema@".ring_slot(i.chapter) = p_slot
          -- offset 0: looked up by key one by one, whatever the statistics say.
          and not exists (
            select from "@schema@".completion d where d.slot = p_slot and d.lane = c.lane and d.seq = i.seq offset 0)
          and exists (select from "@schema@".ready r where r.slot = p_slot and r.lane = c.lane and r.seq = i.seq offset 0)
        limit p_limit
    loop
        if "@schema@".materialize_attempt(v_item.slot, v_item.batch_id, v_item.n::integer) then
            v_count := v_count + 1;
        end if;
    end loop;
    return v_count;
end $$;
