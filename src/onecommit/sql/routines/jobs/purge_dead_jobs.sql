-- Guarantee: the dead letters named are gone for good; purged or not_found. For operator.
-- Locks: schema (shared), dependant rows, then dead_letter rows, each in id order. Raises OC004, 22023.
create or replace function "@schema@".purge_dead_jobs(p_job_ids bigint[], p_actor text, p_reason text, p_epoch bigint)
returns table (job_id bigint, result text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".record_action('purge_dead_jobs', array_to_string(p_job_ids, ','), p_actor, p_reason);
    -- Of an end that was missed: afterwards nobody would know how the parent ended.
    perform "@schema@".release_dependants(array(select d.job_id from "@schema@".dead_letter d where d.job_id = any (p_job_ids)), '{}');
    perform from "@schema@".dead_letter d where d.job_id = any (p_job_ids) order by d.job_id for update;
    return query
        with taken as (
            delete from "@schema@".dead_letter d where d.job_id = any (p_job_ids) returning d.job_id
        )
        select j, case when t.job_id is null then 'not_found' else 'purged' end
        from unnest(p_job_ids) j left join taken t on t.job_id = j order by 1;
end $$;
