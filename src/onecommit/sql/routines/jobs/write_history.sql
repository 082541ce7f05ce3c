-- Guarantee: the ended attempt is a ready and completion pair on lane 0, which no claim reads; its queue and priority, which
-- this lane does not tell, are kept in the options as _place. Returns the place of the completion row. Internal.
create or replace function "@schema@".write_history(p_lease "@schema@".lease, p_outcome "@schema@".outcome, p_detail text,
    p_now timestamptz, out o_slot smallint, out o_row tid)
language plpgsql as $$
declare
    v_chapter constant integer := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    v_seq constant bigint := nextval('"@schema@".lane_0_number'::regclass);
begin
    o_slot := "@schema@".ring_slot(v_chapter);
    insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
    values (o_slot, 0, v_chapter, v_seq, p_lease.job_id, p_lease.created_at, p_lease.run_lease, p_lease.attempt,
        p_lease.max_attempts, p_lease.kind, p_lease.args, coalesce(p_lease.options, '{}') || jsonb_build_object('_place',
            jsonb_build_object('queue', p_lease.queue, 'priority', p_lease.priority)));
    insert into "@schema@".completion (slot, lane, outcome, seq, finished_at, detail)
    values (o_slot, 0, p_outcome, v_seq, p_now, p_detail::json)
    returning ctid into o_row;
    if v_chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
        raise exception 'the chapter was reclaimed while this transaction wrote to it' using errcode = '40001',
            hint = 'Retry the transaction.';
    end if;
end $$;
