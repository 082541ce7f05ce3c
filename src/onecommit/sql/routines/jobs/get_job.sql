-- The job as it stands, or no row: its one live place (lease, schedule, dependant, dead letter, open ready row), else
-- the attempt that ended it. Other closed attempts (moved, retried, those of a purged job) say nothing of where it
-- stands. For reader. Read-only.
create or replace function "@schema@".get_job(p_job_id bigint) returns setof "@schema@".job_view
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
begin
    return query
        select v.* from "@schema@".job_views(p_job_id) v
        where v.outcome is null or v.state in ('dead', 'completed', 'cancelled')
        order by (v.outcome is null or v.state = 'dead') desc, v.run_lease desc limit 1;
end $$;
