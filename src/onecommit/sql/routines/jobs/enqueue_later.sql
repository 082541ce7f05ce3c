-- Guarantee: the jobs are scheduled when the transaction commits. Internal. Returns their ids in order. Raises OC007.
create or replace function "@schema@".enqueue_later(p_queue text, p_kinds text[], p_args json[], p_run_at timestamptz,
    p_priority integer, p_max_attempts integer, p_stored jsonb, p_now timestamptz) returns bigint[]
language plpgsql as $$
declare
    v_ids bigint[];
begin
    with numbered as materialized (
        select nextval('"@schema@".job_number'::regclass) as job_id, a.args, p_kinds[least(a.i, cardinality(p_kinds))] as kind
        from unnest(p_args) with ordinality a (args, i)
    ), written as (
        insert into "@schema@".scheduled (job_id, run_at, queue, priority, created_at, run_lease, attempt, max_attempts, kind, args, options)
        select n.job_id, p_run_at, p_queue, p_priority, p_now, 0, 0, p_max_attempts, n.kind, n.args, p_stored
        from numbered n
    )
    select array_agg(n.job_id) into v_ids from numbered n;
    perform "@schema@".announce_schedule(p_queue, p_priority, p_run_at);
    return v_ids;
end $$;
