-- What each incarnation of list_workers holds: attempts that run, attempts that wait for a callback, leases of Work; and
-- whether it leads. Counted from the claims that a worker has open, the leases and the unfinished Work. For reader. Read-only.
create or replace function "@schema@".worker_loads()
returns table (worker bigint, running bigint, waiting bigint, work bigint, leads boolean)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
    return query
        with claimed as (
            select a.worker, sum(a.attempts)::bigint as n from "@schema@".running_attempts() a group by a.worker
        ), leased as (
            select l.worker, count(*) filter (where not s.waits) as running, count(*) filter (where s.waits) as waiting
            from "@schema@".lease l
            cross join lateral (
                select exists (
                    select from "@schema@".callback c
                    where c.job_id = l.job_id and c.run_lease = l.run_lease and c.awaited and c.resolution is null) as waits
            ) s
            group by l.worker
        ), work as (
            select k.lease_owner as worker, count(*) as n
            from "@schema@".dispatch d join "@schema@".work k on k.work_id = d.work_id
            where d.state = 'leased' group by k.lease_owner
        )
        select w.worker, coalesce(c.n, 0) + coalesce(l.running, 0), coalesce(l.waiting, 0), coalesce(k.n, 0),
               exists (select from "@schema@".leader e where e.worker = w.worker and e.until > "@schema@".store_now())
        from "@schema@".worker w
        left join claimed c on c.worker = w.worker
        left join leased l on l.worker = w.worker
        left join work k on k.worker = w.worker
        order by w.worker;
end $$;
