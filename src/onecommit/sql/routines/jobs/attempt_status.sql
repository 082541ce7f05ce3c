-- The durable evidence about an attempt: open, in_flight (its lock is held by holder_pid, 0 for a prepared transaction: a
-- commit may be coming), closed with its outcome, or unknown (claim or chapter are gone). For executor. Read-only, no locks.
create or replace function "@schema@".attempt_status(job_id bigint, run_lease bigint, claim_slot integer, receipt_id bigint,
    batch_id bigint, batch_index integer)
returns table (state text, outcome text, holder_pid integer, finished_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_attempt record;
    v_closed "@schema@".completion;
begin
    -- Closed is final, and the usual answer. Of an attempt that looks open the holder of its lock is asked for, and then
    -- it is looked at again: if the lock is free, whatever its last holder committed is visible to the second look.
    for v_look in 1..2 loop
        select * into v_attempt from "@schema@".find_attempt(attempt_status.job_id, attempt_status.run_lease,
            attempt_status.claim_slot, attempt_status.receipt_id, attempt_status.batch_id, attempt_status.batch_index) a;
        if not v_attempt.leased then
            select c.* into v_closed from "@schema@".completion c
            where c.slot = "@schema@".ring_slot(v_attempt.chapter) and c.lane = v_attempt.lane and c.seq = v_attempt.seq;
            if v_attempt.chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
                v_closed := null;
                v_attempt.leased := null;
            end if;
        end if;
        if v_closed.outcome = 'materialized' or v_attempt.leased is null then
            select c.* into v_closed from "@schema@".lease_history(attempt_status.job_id, attempt_status.run_lease) c;
        end if;
        exit when v_closed.outcome is not null or v_look = 2;
        holder_pid := "@schema@".attempt_lock_holder(attempt_status.job_id, attempt_status.run_lease);
    end loop;
    outcome := v_closed.outcome;
    finished_at := v_closed.finished_at;
    state := case
        when v_closed.outcome is not null then 'closed'
        when holder_pid is not null then 'in_flight'
        when v_attempt.leased is null then 'unknown'
        else 'open' end;
    if state = 'closed' then
        holder_pid := null;
    end if;
    return next;
end $$;
