-- Guarantee: the dependants of jobs that this transaction ended go where the end sends them when it commits, or the end
-- is on record for the leader. p_outcome null: look into the dead letters, else cancelled. Internal, after the closing.
-- Under a snapshot older than this statement (REPEATABLE READ, SERIALIZABLE) a dependant may be invisible, and looking
-- for it would be a predicate read that conflicts with every enqueue: there the leader releases.
-- Locks: those of decide_dependants.
create or replace function "@schema@".release_dependants(p_job_ids bigint[], p_outcome text) returns void
language plpgsql as $$
declare
    v_parents record;
begin
    if pg_sequence_last_value('"@schema@".dependant_mark'::regclass) = 0 or p_job_ids is null then
        return;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        insert into "@schema@".parent_end (job_id, outcome, code)
        select j, coalesce(p_outcome, d.outcome::text, 'cancelled'), d.code
        from unnest(p_job_ids) j left join "@schema@".dead_letter d on p_outcome is null and d.job_id = j
        order by j
        on conflict do nothing;
        perform pg_notify('@schema@', 's');
        return;
    end if;
    select array_agg(p.job_id) as job_ids, array_agg(coalesce(p_outcome, l.outcome::text, 'cancelled')) as outcomes,
           array_agg(l.code) as codes
    into v_parents
    from (select distinct d.parent_id as job_id from "@schema@".dependant d where d.parent_id = any (p_job_ids)) p
    left join "@schema@".dead_letter l on p_outcome is null and l.job_id = p.job_id;
    if v_parents.job_ids is not null then
        perform "@schema@".decide_dependants(v_parents.job_ids, v_parents.outcomes, v_parents.codes, true);
    end if;
end $$;
