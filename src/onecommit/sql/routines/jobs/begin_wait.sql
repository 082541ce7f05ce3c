-- Guarantee: true once, for the call that marks the callback as awaited while its attempt is open and it is pending:
-- what follows a job that begins to wait is enqueued in the same transaction. For executor.
-- READ COMMITTED. Locks: schema (shared), attempt, callback row. Raises OC004.
create or replace function "@schema@".begin_wait(p_callback uuid, p_job_id bigint, p_run_lease bigint, p_epoch bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'), "@schema@".attempt_key(p_job_id, p_run_lease));
    update "@schema@".callback c set awaited = true
    where c.callback_id = p_callback and c.job_id = p_job_id and c.run_lease = p_run_lease
      and not c.awaited and c.resolution is null and c.timeout_at > "@schema@".store_now()
      and exists (select from "@schema@".lease l where l.job_id = p_job_id and l.run_lease = p_run_lease);
    return found;
end $$;
