-- Guarantee: a materialized attempt ends once: its lease goes, a ready and completion pair is written as history on
-- lane 0 of the current chapter, and the job goes where its outcome sends it. Internal.
-- Returns closed (now or by an earlier call), ended (closed now, and with it the job: the caller releases what hangs on
-- it, for all jobs at once), busy (somebody has the attempt lock), stale (another outcome was recorded), or null when no
-- lease ever stood for this attempt. Locks: attempt (try, so that a batch is not held by one open transaction), lease row.
create or replace function "@schema@".close_lease(p_job_id bigint, p_run_lease bigint, p_outcome "@schema@".outcome,
    p_delay_us bigint, p_code text, p_detail text, p_now timestamptz) returns text
language plpgsql as $$
declare
    v_lease "@schema@".lease;
    v_outcome "@schema@".outcome;
begin
    if not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'), "@schema@".attempt_key(p_job_id, p_run_lease)) then
        return 'busy';
    end if;
    delete from "@schema@".lease l where l.job_id = p_job_id and l.run_lease = p_run_lease returning * into v_lease;
    if not found then
        select c.outcome into v_outcome from "@schema@".lease_history(p_job_id, p_run_lease) c;
        return case when not found then null when v_outcome = p_outcome then 'closed' else 'stale' end;
    end if;
    v_outcome := "@schema@".final_outcome(p_outcome, v_lease.attempt + 1, v_lease.max_attempts);
    perform "@schema@".write_history(v_lease, v_outcome, p_detail, p_now);
    return case when "@schema@".place_leased_job(v_lease, v_outcome, p_delay_us, p_code, p_detail, p_now) then 'ended' else 'closed' end;
end $$;
