-- The backend that holds the attempt's lock, 0 for a prepared transaction (as pg_blocking_pids says it), or null. Internal.
create or replace function "@schema@".attempt_lock_holder(p_job_id bigint, p_run_lease bigint) returns integer
language sql volatile as $$
    select coalesce(l.pid, 0) from pg_catalog.pg_locks l
    where l.locktype = 'advisory' and l.granted and l.objsubid = 2
      and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
      and l.classid = '"@schema@".completion'::regclass::oid
      and l.objid = ("@schema@".attempt_key(p_job_id, p_run_lease)::bigint & 4294967295)::oid
    limit 1
$$;
