-- Guarantee: each dead letter named waits in its queue again with its attempts given back: retried, or not_found. One
-- with a unique key takes the key again; if another job has it, it stays a dead letter: key_held. For operator. Locks:
-- schema (shared), dead_letter rows in id order, unique_key rows in key order, callback rows, (lane, generation) shared. Raises
-- OC004, OC007, 22023, 40001.
create or replace function "@schema@".retry_dead_jobs(p_job_ids bigint[], p_actor text, p_reason text, p_epoch bigint)
returns table (job_id bigint, result text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_refused bigint[];
    v_dead "@schema@".dead_letter[];
    v_place record;
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".record_action('retry_dead_jobs', array_to_string(p_job_ids, ','), p_actor, p_reason);
    -- Of an end that was missed: a dependant goes by its parent's first end.
    perform "@schema@".release_dependants(array(select d.job_id from "@schema@".dead_letter d where d.job_id = any (p_job_ids)), '{}');
    perform from "@schema@".dead_letter d where d.job_id = any (p_job_ids) order by d.job_id for update;
    v_refused := "@schema@".retake_unique_keys(p_job_ids);
    with taken as (
        delete from "@schema@".dead_letter d where d.job_id = any (p_job_ids) and d.job_id <> all (v_refused) returning d as job
    )
    select coalesce(array_agg(t.job order by (t.job).job_id), '{}') into v_dead from taken t;
    -- What failed a job from outside must not fail its retry: the next attempt asks anew.
    update "@schema@".callback c set name = null
    where c.job_id in (select d.job_id from unnest(v_dead) d) and c.resolution = 'failed' and c.name is not null;
    for v_place in select distinct d.queue, d.priority from unnest(v_dead) d order by 1, 2 loop
        perform "@schema@".ready_again(v_place.queue, v_place.priority, array(
            select row(d.job_id, null, d.queue, d.priority, d.created_at, d.run_lease, 0, d.max_attempts, d.kind, d.args, d.options)::"@schema@".scheduled
            from unnest(v_dead) d where d.queue = v_place.queue and d.priority = v_place.priority order by d.job_id));
    end loop;
    return query
        select j, case when j = any (v_refused) then 'key_held' when d.job_id is null then 'not_found' else 'retried' end
        from unnest(p_job_ids) j left join unnest(v_dead) d on d.job_id = j order by 1;
end $$;
