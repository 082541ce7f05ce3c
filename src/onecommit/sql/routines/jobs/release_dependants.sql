-- Guarantee: the dependants of jobs that this transaction ended go where the end sends them when it commits, or the end
-- is on record for the leader. p_completed: those that completed; the others are dead letters, or else cancelled.
-- Internal, once in a transaction of ours and after the closing, so that all dependants are locked in one order.
-- Under a snapshot older than this statement (REPEATABLE READ, SERIALIZABLE) a dependant may be invisible, and looking
-- for it would be a predicate read that conflicts with every enqueue: there the leader releases.
-- Locks: those of decide_dependants.
create or replace function "@schema@".release_dependants(p_job_ids bigint[], p_completed bigint[]) returns void
language plpgsql as $$
declare
    v_parents record;
begin
    if pg_sequence_last_value('"@schema@".dependant_mark'::regclass) = 0 or p_job_ids is null then
        return;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        insert into "@schema@".parent_end (job_id, outcome, code)
        select j, case when j = any (p_completed) then 'completed' else coalesce(d.outcome::text, 'cancelled') end, d.code
        from unnest(p_job_ids) j left join "@schema@".dead_letter d on d.job_id = j and j <> all (p_completed)
        order by j
        on conflict do nothing;
        perform pg_notify('@schema@', 's');
        return;
    end if;
    select array_agg(p.job_id) as job_ids,
           array_agg(case when p.job_id = any (p_completed) then 'completed' else coalesce(l.outcome::text, 'cancelled') end) as outcomes,
           array_agg(l.code) as codes
    into v_parents
    from (select distinct d.parent_id as job_id from "@schema@".dependant d where d.parent_id = any (p_job_ids)) p
    left join "@schema@".dead_letter l on l.job_id = p.job_id and p.job_id <> all (p_completed);
    if v_parents.job_ids is not null then
        perform "@schema@".decide_dependants(v_parents.job_ids, v_parents.outcomes, v_parents.codes, true);
    end if;
end $$;
