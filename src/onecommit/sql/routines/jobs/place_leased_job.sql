-- Guarantee: the job of a materialized attempt goes where the outcome sends it: scheduled, dead letters, or nowhere.
-- Returns whether that was its end: then the caller releases its unique keys, progress and dependants. Internal.
create or replace function "@schema@".place_leased_job(p_lease "@schema@".lease, p_outcome "@schema@".outcome,
    p_delay_us bigint, p_code text, p_detail text, p_now timestamptz) returns boolean
language plpgsql as $$
declare
    v_attempt constant smallint := p_lease.attempt + case when p_outcome = 'snoozed' then 0 else 1 end;
begin
    if p_outcome in ('retried', 'snoozed') or p_outcome = 'rescued' and v_attempt < p_lease.max_attempts then
        insert into "@schema@".scheduled (job_id, run_at, queue, priority, created_at, run_lease, attempt, max_attempts, kind, args, options)
        values (p_lease.job_id, p_now + coalesce(p_delay_us, 0) * interval '1 microsecond', p_lease.queue, p_lease.priority,
            p_lease.created_at, p_lease.run_lease, v_attempt, p_lease.max_attempts, p_lease.kind, p_lease.args, p_lease.options);
        perform pg_notify('@schema@', 's');
        return false;
    end if;
    if p_outcome in ('failed', 'discarded', 'rescued') then
        insert into "@schema@".dead_letter (job_id, died_at, outcome, code, detail, queue, priority, created_at, run_lease,
            attempt, max_attempts, kind, args, options)
        values (p_lease.job_id, p_now, p_outcome, p_code, p_detail::json, p_lease.queue, p_lease.priority, p_lease.created_at,
            p_lease.run_lease, v_attempt, p_lease.max_attempts, p_lease.kind, p_lease.args, p_lease.options);
    end if;
    return true;
end $$;
