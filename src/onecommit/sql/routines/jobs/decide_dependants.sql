-- Guarantee: dependants of the ended jobs become ready or scheduled, or end themselves by their rule, and then theirs
-- likewise, level by level. At most 5,000 jobs and 100 levels: what is beyond is on record for the leader. Internal.
-- Locks: dependant rows in id order, unique_key rows in key order, (lane, generation) shared.
create or replace function "@schema@".decide_dependants(p_job_ids bigint[], p_outcomes text[], p_codes text[]) returns void
language plpgsql as $$
declare
    v_ended record;
    v_next record;
    v_left integer := 5000;
    v_taken "@schema@".dependant[];
begin
    select p_job_ids as job_ids, p_outcomes as outcomes, p_codes as codes into v_ended;
    for v_level in 1..100 loop
        v_taken := "@schema@".take_dependants(v_ended.job_ids, v_ended.outcomes, v_ended.codes, v_left);
        v_left := v_left - cardinality(v_taken);
        perform "@schema@".place_dependants(array(select d from unnest(v_taken) d where d.on_parent_failure = 'enqueue'));
        perform "@schema@".discard_dependants(array(select d from unnest(v_taken) d where d.on_parent_failure = 'discard'));
        perform "@schema@".cancel_dependants(array(select d from unnest(v_taken) d where d.on_parent_failure = 'cancel'), 'parent_failed');
        select array_agg(d.job_id) as job_ids, array_agg(case d.on_parent_failure when 'cancel' then 'cancelled' else 'discarded' end) as outcomes,
               array_agg('parent_failed'::text) as codes
        into v_next from unnest(v_taken) d where d.on_parent_failure <> 'enqueue';
        if v_left = 0 or v_level = 100 then
            perform "@schema@".leave_dependants(v_ended.job_ids || v_next.job_ids, v_ended.outcomes || v_next.outcomes, v_ended.codes || v_next.codes);
            return;
        end if;
        exit when v_next.job_ids is null;
        v_ended := v_next;
    end loop;
end $$;
