-- Which attempts of a chapter are completed: 1-based positions in the arrays. Once true, for ever true; what is not
-- named here may be open, closed otherwise or materialized: ask attempt_status. For executor. Read-only, no locks.
create or replace function "@schema@".completed_attempts(p_chapter integer, p_lanes smallint[], p_seqs bigint[])
returns setof integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
    -- Rows of a reclaimed chapter are gone, and its slot holds another one.
    if p_chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
        return query
        select i.n::integer
        from unnest(p_lanes, p_seqs) with ordinality i (lane, seq, n)
        -- Lateral and limited: each row is looked up by its whole key.
        cross join lateral (
            select c.outcome from "@schema@".completion c
            where c.slot = "@schema@".ring_slot(p_chapter) and c.lane = i.lane and c.seq = i.seq limit 1
        ) c
        where c.outcome = 'completed';
    end if;
end $$;
