-- Which of the callbacks that handlers wait for are resolved or past their timeout, with what came; foreign: it is none
-- of that attempt's. The others count as awaited from now on, and their jobs as waiting. A callback that a transaction
-- is resolving is left for the next call. For executor. Locks: schema (shared), callback rows (skipping locked ones).
-- Raises OC004.
create or replace function "@schema@".await_callbacks(p_callbacks uuid[], p_job_ids bigint[], p_run_leases bigint[], p_epoch bigint)
returns table (callback_id text, resolution text, payload text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform "@schema@".enter_runtime(p_epoch);
    with due as (
        select c.callback_id from "@schema@".callback c
        where (c.callback_id, c.job_id, c.run_lease) in (select * from unnest(p_callbacks, p_job_ids, p_run_leases) i)
          and c.resolution is null and (not c.awaited or c.timeout_at <= "@schema@".store_now())
        for update skip locked
    )
    update "@schema@".callback c
    set awaited = true,
        resolution = case when c.timeout_at <= "@schema@".store_now() then 'timed_out' end,
        resolved_at = case when c.timeout_at <= "@schema@".store_now() then "@schema@".store_now() end
    from due d where d.callback_id = c.callback_id and c.resolution is null;
    return query
        select i.callback_id::text, case when c.callback_id is null then 'foreign' else c.resolution end, c.payload::text
        from unnest(p_callbacks, p_job_ids, p_run_leases) i (callback_id, job_id, run_lease)
        left join "@schema@".callback c using (callback_id, job_id, run_lease)
        where c.callback_id is null or c.resolution is not null;
end $$;
