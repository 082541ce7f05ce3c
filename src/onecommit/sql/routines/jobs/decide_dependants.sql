-- Guarantee: dependants of the ended jobs become ready or scheduled, or end themselves by their rule, and then theirs
-- likewise, level by level. What lock_dependants leaves out is on record for the leader. Internal.
-- Locks: dependant rows in id order (unless p_wait, skip locked), unique_key rows in key order, (lane, generation) shared.
create or replace function "@schema@".decide_dependants(p_job_ids bigint[], p_outcomes text[], p_codes text[], p_wait boolean) returns void
language plpgsql as $$
declare
    v_locks record;
    v_ended record;
    v_all record;
    v_taken "@schema@".dependant[];
begin
    select p_job_ids as job_ids, p_outcomes as outcomes, p_codes as codes into v_ended;
    v_all := v_ended;
    v_locks := "@schema@".lock_dependants(p_job_ids, p_outcomes, '{}', p_wait);
    for v_level in 1..100 loop
        exit when v_locks.o_locked = '{}';
        v_taken := "@schema@".take_dependants(v_ended.job_ids, v_ended.outcomes, v_ended.codes, v_locks.o_locked);
        perform "@schema@".place_dependants(array(select d from unnest(v_taken) d where d.on_parent_failure = 'enqueue'));
        perform "@schema@".discard_dependants(array(select d from unnest(v_taken) d where d.on_parent_failure = 'discard'));
        perform "@schema@".cancel_dependants(array(select d from unnest(v_taken) d where d.on_parent_failure = 'cancel'), 'parent_failed');
        select array_agg(d.job_id) as job_ids, array_agg(case d.on_parent_failure when 'cancel' then 'cancelled' else 'discarded' end) as outcomes,
               array_agg('parent_failed'::text) as codes
        into v_ended from unnest(v_taken) d where d.on_parent_failure <> 'enqueue';
        exit when v_ended.job_ids is null;
        select v_all.job_ids || v_ended.job_ids as job_ids, v_all.outcomes || v_ended.outcomes as outcomes,
               v_all.codes || v_ended.codes as codes
        into v_all;
    end loop;
    if not v_locks.o_whole then
        perform "@schema@".leave_dependants(v_all.job_ids, v_all.outcomes, v_all.codes);
    end if;
end $$;
