-- What follow-ups are told of jobs whose attempts this transaction has ended: as they stand now. Arguments and details
-- only of the kinds named; jobs that are gone are left out. For executor, operator, reader. Read-only.
create or replace function "@schema@".closed_jobs(p_job_ids bigint[], p_kinds text[])
returns table (job_id bigint, state text, kind text, attempt integer, max_attempts integer, run_lease bigint, code text, args text, detail text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select s.job_id, 'scheduled', s.kind, s.attempt::integer, s.max_attempts::integer, s.run_lease::bigint, null::text,
               case when s.kind = any (p_kinds) then s.args::text end, null::text
        from "@schema@".scheduled s where s.job_id = any (p_job_ids)
        union all
        select d.job_id, 'dead', d.kind, d.attempt::integer, d.max_attempts::integer, d.run_lease::bigint, d.code,
               case when d.kind = any (p_kinds) then d.args::text end, null
        from "@schema@".dead_letter d where d.job_id = any (p_job_ids)
        union all
        select v.job_id, v.state, v.kind, v.attempt, v.max_attempts, v.run_lease, v.code,
               case when v.kind = any (p_kinds) then v.args end, case when v.kind = any (p_kinds) then v.detail end
        from unnest(p_job_ids) j cross join lateral "@schema@".get_job(j) v
        where not exists (select from "@schema@".scheduled s where s.job_id = j)
          and not exists (select from "@schema@".dead_letter d where d.job_id = j);
end $$;
