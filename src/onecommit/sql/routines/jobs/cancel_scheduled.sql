-- Guarantee: the scheduled job is gone and its history says cancelled; null when it is not scheduled. Internal;
-- the caller releases what hangs on the job.
create or replace function "@schema@".cancel_scheduled(p_job_id bigint) returns text
language plpgsql as $$
declare
    v_job "@schema@".scheduled;
begin
    delete from "@schema@".scheduled s where s.job_id = p_job_id returning * into v_job;
    if not found then
        return null;
    end if;
    perform "@schema@".write_history(row(v_job.job_id, v_job.run_lease, 0, 0, 0, 0, 0, 0, "@schema@".store_now(), null, v_job.queue,
        v_job.priority, v_job.created_at, (v_job.attempt - 1)::smallint, v_job.max_attempts, v_job.kind, v_job.args, v_job.options)::"@schema@".lease,
        'cancelled', null, "@schema@".store_now());
    return 'cancelled';
end $$;
