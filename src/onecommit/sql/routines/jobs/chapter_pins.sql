-- What keeps the oldest chapter from being reclaimed: its open attempts, at most 10,000 of them, by queue, waiting or
-- claimed, with a few of their jobs; nothing for the head. Reads the whole chapter when it is open. For reader. Read-only.
create or replace function "@schema@".chapter_pins()
returns table (queue text, claimed boolean, attempts bigint, job_ids bigint[])
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_oldest constant integer := (select r.reclaimed + 1 from "@schema@".ring r);
    v_slot constant smallint := "@schema@".ring_slot(v_oldest);
begin
    if v_oldest >= pg_sequence_last_value('"@schema@".head_fence'::regclass) or not "@schema@".chapter_is_open(v_slot) then
        return;
    end if;
    return query
        select l.queue, o.seq <= s.frontier and not o.seq <@ (s.old_holes + s.new_holes), count(*), (array_agg(o.job_id))[1:5]
        from (
            select r.lane, r.seq, r.job_id from "@schema@".ready r
            -- offset 0: looked up by key one by one, whatever the statistics say.
            where r.slot = v_slot and not exists (
                select from "@schema@".completion c where c.slot = v_slot and c.lane = r.lane and c.seq = r.seq offset 0)
            limit 10000
        ) o
        join "@schema@".lane l on l.lane = o.lane
        cross join lateral "@schema@".lane_state(o.lane) s
        group by 1, 2 order by 1, 2;
end $$;
