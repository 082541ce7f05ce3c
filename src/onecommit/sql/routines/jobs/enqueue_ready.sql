-- Guarantee: the jobs wait in their lane when the transaction commits. Internal. Returns their ids in order.
-- Locks: (lane, generation) shared. Raises OC007, 40001.
create or replace function "@schema@".enqueue_ready(p_queue text, p_kinds text[], p_args json[], p_priority integer,
    p_max_attempts integer, p_stored jsonb, p_now timestamptz) returns bigint[]
language plpgsql as $$
declare
    v_lane record;
    v_chapter integer;
    v_ids bigint[];
begin
    v_lane := "@schema@".enter_lane(p_queue, p_priority);
    v_chapter := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    with numbered as materialized (
        select nextval('"@schema@".job_number'::regclass) as job_id, a.args, p_kinds[least(a.i, cardinality(p_kinds))] as kind
        from unnest(p_args) with ordinality a (args, i)
    ), written as (
        insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
        select "@schema@".ring_slot(v_chapter), v_lane.o_lane, v_chapter, nextval(v_lane.o_number_seq), n.job_id, p_now,
               0, 0, p_max_attempts, n.kind, n.args, p_stored
        from numbered n
    )
    select array_agg(n.job_id) into v_ids from numbered n;
    perform "@schema@".leave_lane(v_lane.o_lane, v_lane.o_sleeper_seq, v_chapter);
    return v_ids;
end $$;
