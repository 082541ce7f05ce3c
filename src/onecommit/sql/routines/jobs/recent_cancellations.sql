-- The attempts cancelled in the last five minutes: longer than any heartbeat interval. Internal.
create or replace function "@schema@".recent_cancellations() returns table (cancel_job_ids bigint[], cancel_run_leases bigint[])
language sql volatile as $$
    select coalesce(array_agg(c.job_id order by c.job_id), '{}'), coalesce(array_agg(c.run_lease::bigint order by c.job_id), '{}')
    from "@schema@".cancellation c where c.at > "@schema@".store_now() - interval '5 minutes'
$$;
