-- Guarantee: the lease of this attempt is gone and its completion stands on lane 0; nulls when there was none. Internal,
-- under the attempt lock.
create or replace function "@schema@".complete_lease(p_job_id bigint, p_run_lease bigint, p_receipt_id bigint,
    p_detail text, p_now timestamptz,
    out o_slot smallint, out o_row tid, out o_options jsonb)
language plpgsql as $$
declare
    v_lease "@schema@".lease;
begin
    delete from "@schema@".lease l
    where l.job_id = p_job_id and l.run_lease = p_run_lease and l.receipt_id = p_receipt_id
    returning * into v_lease;
    if found then
        select h.o_slot, h.o_row, v_lease.options into o_slot, o_row, o_options
        from "@schema@".write_history(v_lease, 'completed', p_detail, p_now) h;
    end if;
end $$;
