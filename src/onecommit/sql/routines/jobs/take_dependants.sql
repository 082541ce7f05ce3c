-- Guarantee: those of the ended jobs' dependants that p_locked names are gone from the table. What is returned says in
-- on_parent_failure what to do with each, 'enqueue' if its parent completed, and names the end in its options. Internal.
-- One that lock_dependants did not see was committed later: the leader's look at it is still to come.
create or replace function "@schema@".take_dependants(p_job_ids bigint[], p_outcomes text[], p_codes text[], p_locked bigint[])
returns "@schema@".dependant[]
language plpgsql as $$
declare
    v_taken "@schema@".dependant[];
begin
    with taken as (
        delete from "@schema@".dependant d using unnest(p_job_ids, p_outcomes, p_codes) p (job_id, outcome, code), unnest(p_locked) l (job_id)
        where d.parent_id = p.job_id and d.job_id = l.job_id
        returning d.*, p.outcome, p.code
    )
    select array_agg(row(t.job_id, t.parent_id, case when t.outcome = 'completed' then 'enqueue' else t.on_parent_failure end,
        t.run_at, t.queue, t.priority, t.created_at, t.max_attempts, t.kind, t.args,
        t.options || jsonb_build_object('parent', jsonb_strip_nulls(jsonb_build_object(
            'job_id', t.parent_id, 'outcome', t.outcome, 'code', t.code))),
        null, null)::"@schema@".dependant order by t.job_id)
    into v_taken from taken t;
    return coalesce(v_taken, '{}');
end $$;
