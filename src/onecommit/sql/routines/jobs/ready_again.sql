-- Guarantee: the jobs, which no other table holds any more, wait in their lane with lease and attempt unchanged. Internal.
-- Locks: (lane, generation) shared. Raises 40001.
create or replace function "@schema@".ready_again(p_queue text, p_priority integer, p_jobs "@schema@".scheduled[]) returns void
language plpgsql as $$
declare
    v_lane record;
    v_chapter integer;
begin
    select * into v_lane from "@schema@".enter_lane(p_queue, p_priority);
    v_chapter := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
    select "@schema@".ring_slot(v_chapter), v_lane.o_lane, v_chapter, nextval(v_lane.o_number_seq), j.job_id, j.created_at,
           j.run_lease, j.attempt, j.max_attempts, j.kind, j.args, j.options
    from unnest(p_jobs) j;
    perform "@schema@".leave_lane(v_lane.o_lane, v_lane.o_sleeper_seq, v_chapter);
end $$;
