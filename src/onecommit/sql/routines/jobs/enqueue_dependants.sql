-- Guarantee: each job waits for its parent's end, or if that has ended already goes where it sends it. Internal.
-- A parent must exist before its dependant and is never changed, so there are no cycles.
-- Locks: those of decide_dependants. Raises OC007, 22023, 40001.
create or replace function "@schema@".enqueue_dependants(p_dependants "@schema@".dependant[]) returns void
language plpgsql as $$
declare
    v_parents record;
begin
    -- Before the first row: a closer that finds the mark unset is older than every dependant (see the leader's look).
    if pg_sequence_last_value('"@schema@".dependant_mark'::regclass) = 0 then
        perform setval('"@schema@".dependant_mark', 1, true);
    end if;
    select bool_or(f.unknown) as unknown, array_agg(f.job_id) filter (where f.own) as own,
           array_agg(f.job_id) filter (where f.outcome is not null) as job_ids,
           array_agg(f.outcome) filter (where f.outcome is not null) as outcomes,
           array_agg(f.code) filter (where f.outcome is not null) as codes
    into v_parents
    from "@schema@".find_parents(array(select d.parent_id from unnest(p_dependants) d)) f;
    if v_parents.unknown then
        raise exception 'after: there is no such job, or its history is gone' using errcode = '22023',
            hint = 'Enqueue a dependant before its parent''s chapter is reclaimed, or in the transaction that enqueues the parent.';
    end if;
    -- Now, because in a closer's transaction a full pool would be found too late.
    perform "@schema@".announce_schedule(p.queue, p.priority, null)
    from (select distinct d.queue, d.priority from unnest(p_dependants) d order by 1, 2) p;
    insert into "@schema@".dependant
    select d.job_id, d.parent_id, d.on_parent_failure, d.run_at, d.queue, d.priority, d.created_at, d.max_attempts, d.kind, d.args,
           coalesce(d.options, '{}') || jsonb_build_object('parent', jsonb_build_object('job_id', d.parent_id)),
           case when (d.parent_id = any (v_parents.own)) is not true then d.created_at + interval '2 seconds' end
    from unnest(p_dependants) d;
    if v_parents.job_ids is not null then
        perform "@schema@".decide_dependants(v_parents.job_ids, v_parents.outcomes, v_parents.codes, true);
    end if;
end $$;
