-- Jobs of these states (a null: of any) with all of these tags (null: any), newest id first, below p_before; a job with
-- several closed attempts in the ring is found once, as it stands. Internal. Raises 22023.
-- It looks back from the newest id in growing steps until it has enough, except for states that are found without the ring.
create or replace function "@schema@".find_jobs(p_states text[], p_queue text, p_kind text, p_tags text[], p_limit integer, p_before bigint)
returns setof "@schema@".job_view
language plpgsql stable as $$
declare
    v_any constant boolean := array_position(p_states, null) is not null;
    v_before bigint := least(p_before, coalesce(pg_sequence_last_value('"@schema@".job_number'::regclass), 0) + 1);
    v_step bigint := 4 * p_limit;
    v_left integer := p_limit;
    v_found integer;
begin
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception 'limit: must be 1 to 1000' using errcode = '22023';
    end if;
    if p_states <@ '{running,cancelled}'::text[] then
        v_step := v_before;
    end if;
    while v_left > 0 and v_before > 0 loop
        return query
            select v.* from (
                select distinct b.job_id from unnest(p_states) s (state)
                cross join lateral "@schema@".jobs_between(s.state, p_queue, p_kind, p_tags, v_before - v_step, v_before) b
                order by b.job_id desc
            ) n
            cross join lateral "@schema@".get_job(n.job_id) v
            where v_any or v.state = any (p_states)
            order by n.job_id desc limit v_left;
        get diagnostics v_found = row_count;
        v_left := v_left - v_found;
        v_before := v_before - v_step;
        v_step := 4 * v_step;
    end loop;
end $$;
