-- The materialized attempts that nobody works on any more, as open_claims has the others; they lie in no chapter. Internal.
create or replace function "@schema@".open_leases(p_limit integer)
returns table (chapter integer, lane smallint, seq bigint, job_id bigint, run_lease bigint, attempt smallint, code text)
language sql stable as $$
    select 0, null::smallint, null::bigint, l.job_id, l.run_lease, l.attempt,
           case when w.ended_at is not null or w.worker is null then 'worker_lost' else 'deadline_passed' end
    from "@schema@".lease l
    left join "@schema@".worker w on w.worker = l.worker
    where w.worker is null or w.ended_at is not null or l.deadline < "@schema@".store_now()
    order by l.job_id limit p_limit
$$;
