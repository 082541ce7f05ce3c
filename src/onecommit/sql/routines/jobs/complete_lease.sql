-- Guarantee: the lease of this attempt is gone and its completion stands on lane 0; the xmin of that row, or null when
-- there was no lease. Internal, under the attempt lock.
create or replace function "@schema@".complete_lease(p_job_id bigint, p_run_lease bigint, p_receipt_id bigint,
    p_detail text, p_now timestamptz) returns xid
language plpgsql as $$
declare
    v_lease "@schema@".lease;
    v_place record;
begin
    delete from "@schema@".lease l
    where l.job_id = p_job_id and l.run_lease = p_run_lease and l.receipt_id = p_receipt_id
    returning * into v_lease;
    if not found then
        return null;
    end if;
    v_place := "@schema@".write_history(v_lease, 'completed', p_detail, p_now);
    -- By ctid: a look-up by key causes spurious serialization failures.
    return (select c.xmin from "@schema@".completion c where c.slot = v_place.o_slot and c.ctid = v_place.o_row);
end $$;
