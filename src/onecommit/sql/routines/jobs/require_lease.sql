-- Guarantee: this transaction holds the lock of the attempt that the token names, and its authority is a lease.
-- Internal. Locks: attempt, then completion key. Raises OC001 when it is closed or foreign, 40001.
create or replace function "@schema@".require_lease(p_job_id bigint, p_run_lease bigint, p_claim_slot integer,
    p_receipt_id bigint, p_batch_id bigint, p_batch_index integer, p_epoch bigint) returns void
language plpgsql as $$
declare
    v_attempt record;
begin
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'), "@schema@".attempt_key(p_job_id, p_run_lease));
    -- A new statement: what the lock's last holder committed is visible from here on.
    select * into v_attempt from "@schema@".find_attempt(p_job_id, p_run_lease, p_claim_slot, p_receipt_id, p_batch_id, p_batch_index) a;
    -- A chapter that was reclaimed was closed before; an insert into its slot would meet no key.
    if not found or v_attempt.epoch is distinct from p_epoch
        or v_attempt.chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass)
        or not v_attempt.leased and not "@schema@".materialize_attempt(p_claim_slot, p_batch_id, p_batch_index) then
        perform "@schema@".refuse_stale();
    end if;
end $$;
