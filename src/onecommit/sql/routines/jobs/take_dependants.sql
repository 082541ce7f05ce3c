-- Guarantee: up to p_limit dependants of the ended jobs, oldest first, are gone from the table. What is returned says in
-- on_parent_failure what to do with each, 'enqueue' if its parent completed, and names the end in its options. Internal.
-- Locks: dependant rows in id order.
create or replace function "@schema@".take_dependants(p_job_ids bigint[], p_outcomes text[], p_codes text[], p_limit integer)
returns "@schema@".dependant[]
language plpgsql as $$
declare
    v_taken "@schema@".dependant[];
begin
    with due as (
        select d.job_id, p.outcome, p.code
        from unnest(p_job_ids, p_outcomes, p_codes) p (job_id, outcome, code)
        join "@schema@".dependant d on d.parent_id = p.job_id
        order by d.job_id limit p_limit for update
    ), taken as (
        delete from "@schema@".dependant d using due where d.job_id = due.job_id
        returning d.*, due.outcome, due.code
    )
    select array_agg(row(t.job_id, t.parent_id, case when t.outcome = 'completed' then 'enqueue' else t.on_parent_failure end,
        t.run_at, t.queue, t.priority, t.created_at, t.max_attempts, t.kind, t.args,
        t.options || jsonb_build_object('parent', jsonb_strip_nulls(jsonb_build_object(
            'job_id', t.parent_id, 'outcome', t.outcome, 'code', t.code))),
        null, null)::"@schema@".dependant order by t.job_id)
    into v_taken from taken t;
    return coalesce(v_taken, '{}');
end $$;
