-- Guarantee: the attempts that wait or run of those jobs are locked before the first completion key is taken. A row for
-- each job: where open_attempt found it, or nulls if it has none. Internal, for try_cancel.
-- Locks: attempts in id order (blocking: a caller's commit in flight decides first).
create or replace function "@schema@".lock_attempts(p_job_ids bigint[])
returns table (job_id bigint, leased boolean, chapter integer, lane smallint, seq bigint, run_lease bigint, claimed boolean)
language plpgsql as $$
#variable_conflict use_column
begin
    for job_id in select j from unnest(p_job_ids) j order by j loop
        select o.* into leased, chapter, lane, seq, run_lease, claimed from "@schema@".open_attempt(job_id) o
        where not exists (select from "@schema@".scheduled s where s.job_id = lock_attempts.job_id);
        if found then
            perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'), "@schema@".attempt_key(job_id, run_lease));
        end if;
        return next;
    end loop;
end $$;
