-- Guarantee: dependants of those of the jobs that have ended are decided. Returns how many parents that were. Internal.
-- Its caller holds rows that it looks at, so nothing is waited for: what others hold is on record for the leader.
-- A job without a trace has ended and its history was reclaimed: then the dependants' rule applies, the outcome unknown.
create or replace function "@schema@".decide_missed(p_parents bigint[]) returns integer
language plpgsql as $$
declare
    v_ended record;
    v_vanished bigint[];
begin
    select array_agg(f.job_id) filter (where f.outcome is not null) as job_ids,
           array_agg(f.outcome) filter (where f.outcome is not null) as outcomes,
           array_agg(f.code) filter (where f.outcome is not null) as codes,
           array_agg(f.job_id) filter (where f.unknown) as unknown
    into v_ended from "@schema@".find_parents(p_parents) f;
    -- Asked twice: a truncation is not bound to snapshots, so a look may miss a row that was moved and its chapter truncated.
    select array_agg(f.job_id) into v_vanished from "@schema@".find_parents(v_ended.unknown) f where f.unknown;
    if v_ended.job_ids is null and v_vanished is null then
        return 0;
    end if;
    perform "@schema@".decide_dependants(v_ended.job_ids || v_vanished,
        v_ended.outcomes || array_fill(null::text, array[coalesce(cardinality(v_vanished), 0)]),
        v_ended.codes || array_fill(null::text, array[coalesce(cardinality(v_vanished), 0)]), false);
    return coalesce(cardinality(v_ended.job_ids), 0) + coalesce(cardinality(v_vanished), 0);
end $$;
