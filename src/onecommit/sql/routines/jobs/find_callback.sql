-- Guarantee: the job's callback of this name, if it has one that still counts, belongs to the attempt now. One that
-- timed out or asked for a retry under an earlier attempt loses its name: the next attempt asks anew. Internal, under the
-- attempt lock. Locks: callback rows of the job.
create or replace function "@schema@".find_callback(p_job_id bigint, p_run_lease bigint, p_name text) returns "@schema@".callback
language plpgsql as $$
declare
    v_callback "@schema@".callback;
begin
    update "@schema@".callback c set name = null
    where c.job_id = p_job_id and c.name = p_name and c.run_lease < p_run_lease
      and (c.resolution in ('timed_out', 'retried') or c.resolution is null and c.timeout_at <= "@schema@".store_now());
    update "@schema@".callback c set run_lease = p_run_lease, awaited = false
    where c.job_id = p_job_id and c.name = p_name and c.run_lease < p_run_lease;
    select c.* into v_callback from "@schema@".callback c where c.job_id = p_job_id and c.name = p_name;
    return v_callback;
end $$;
