-- Recent cancellations, asked for when a notice of one arrives. For executor. Locks: schema (shared). Raises OC004.
create or replace function "@schema@".cancellations(p_epoch bigint) returns table (cancel_job_ids bigint[], cancel_run_leases bigint[])
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    return query select c.* from "@schema@".recent_cancellations() c;
end $$;
