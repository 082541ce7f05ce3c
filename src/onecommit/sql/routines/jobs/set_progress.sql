-- Guarantee: the jobs' progress is the data given, unless a later attempt wrote it. For executor.
-- Locks: schema (shared), progress rows in key order. Raises OC004, 22023.
create or replace function "@schema@".set_progress(p_epoch bigint, p_job_ids bigint[], p_run_leases bigint[], p_data text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_data json[];
begin
    v_data := "@schema@".check_payloads('{progress}', p_data);
    perform "@schema@".enter_runtime(p_epoch);
    insert into "@schema@".progress as g (job_id, run_lease, data, updated_at)
    select i.job_id, i.run_lease, i.data, "@schema@".store_now()
    from unnest(p_job_ids, p_run_leases, v_data) i (job_id, run_lease, data)
    order by i.job_id
    on conflict (job_id) do update set run_lease = excluded.run_lease, data = excluded.data, updated_at = excluded.updated_at
        where g.run_lease <= excluded.run_lease;
end $$;
