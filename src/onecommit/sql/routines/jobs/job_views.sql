-- Every trace of the job as view rows; run_lease and attempt are the last ones used. Internal.
create or replace function "@schema@".job_views(p_job_id bigint) returns setof "@schema@".job_view
language sql stable as $$
    select l.job_id, case when exists (
               select from "@schema@".callback c
               where c.job_id = l.job_id and c.run_lease = l.run_lease and c.awaited and c.resolution is null)
           then 'waiting' else 'running' end, l.queue, l.priority::integer, l.kind, l.attempt + 1, l.max_attempts::integer, l.run_lease::bigint,
           l.created_at, null::timestamptz, null::timestamptz, null::text, null::text, l.args::text, l.options::text,
           g.data::text, null::text, "@schema@".parent_of(l.options)
    from "@schema@".lease l left join "@schema@".progress g on g.job_id = l.job_id where l.job_id = p_job_id
    union all
    select b.job_id, 'blocked', b.queue, b.priority, b.kind, 0, b.max_attempts, 1,
           b.created_at, b.run_at, null, null, null, b.args::text, b.options::text, null, null, b.parent_id
    from "@schema@".dependant b where b.job_id = p_job_id
    union all
    select s.job_id, 'scheduled', s.queue, s.priority, s.kind, s.attempt, s.max_attempts, s.run_lease,
           s.created_at, s.run_at, null, null, null, s.args::text, s.options::text, g.data::text, null, "@schema@".parent_of(s.options)
    from "@schema@".scheduled s left join "@schema@".progress g on g.job_id = s.job_id where s.job_id = p_job_id
    union all
    select d.job_id, 'dead', d.queue, d.priority, d.kind, d.attempt, d.max_attempts, d.run_lease,
           d.created_at, null, d.died_at, d.outcome::text, d.code, d.args::text, d.options::text, null, d.detail::text, "@schema@".parent_of(d.options)
    from "@schema@".dead_letter d where d.job_id = p_job_id
    union all
    select a.job_id, a.state, a.queue, a.priority, a.kind, a.attempt, a.max_attempts, a.run_lease, a.created_at, null,
           a.finished_at, a.outcome, null, a.args, a.options, g.data::text, a.detail, a.parent_id
    from "@schema@".ready_rows(p_job_id) r cross join lateral "@schema@".attempt_view(r) a
    left join "@schema@".progress g on g.job_id = r.job_id
$$;
