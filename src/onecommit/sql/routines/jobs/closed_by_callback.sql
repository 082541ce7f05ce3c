-- What follow-ups are told of the job whose attempt this callback's resolution has just ended, as by closed_jobs; no
-- row if the resolution ended none, but is kept for the job's next attempt. For callback_ingress, executor (for what
-- was kept). Read-only.
create or replace function "@schema@".closed_by_callback(p_callback uuid, p_kinds text[])
returns table (job_id bigint, state text, kind text, attempt integer, max_attempts integer, run_lease bigint, code text, args text, detail text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select j.*
        from "@schema@".callback c cross join lateral "@schema@".closed_jobs(array[c.job_id], p_kinds) j
        where c.callback_id = p_callback and c.ended;
end $$;
