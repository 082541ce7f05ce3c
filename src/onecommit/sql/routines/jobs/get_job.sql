-- The job as it stands, or no row: its one live place (lease, schedule, dependant, dead letter, open ready row), else
-- the attempt that ended it. Other closed attempts (moved, those of a purged job) say nothing of where it stands; of
-- the last retried one a job that has not ended shows the detail, while the ring keeps it. For reader. Read-only.
create or replace function "@schema@".get_job(p_job_id bigint) returns setof "@schema@".job_view
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
begin
    return query
        with trace as materialized (select t.* from "@schema@".job_views(p_job_id) t)
        select v.job_id, v.state, v.queue, v.priority, v.kind, v.attempt, v.max_attempts, v.run_lease, v.created_at, v.run_at,
               v.finished_at, v.outcome, v.code, v.args, v.options, v.progress, coalesce(v.detail, failed.detail), v.parent_id
        from trace v
        left join lateral (
            select t.detail from trace t
            where v.outcome is null and t.outcome = 'retried' and t.attempt <= v.attempt
            order by t.run_lease desc limit 1
        ) failed on true
        where v.outcome is null or v.state in ('dead', 'completed', 'cancelled')
        order by (v.outcome is null or v.state = 'dead') desc, v.run_lease desc limit 1;
end $$;
