-- The part of rescue_jobs for materialized attempts. Internal. Locks: attempts (try), lease rows.
create or replace function "@schema@".rescue_leases(p_limit integer) returns bigint[]
language plpgsql as $$
declare
    v_lease record;
    v_rescued bigint[] := '{}';
begin
    for v_lease in
        select l.job_id, l.run_lease, l.attempt, case when w.ended_at is not null or w.worker is null then 'worker_lost' else 'deadline_passed' end as code
        from "@schema@".lease l
        left join "@schema@".worker w on w.worker = l.worker
        where w.worker is null or w.ended_at is not null or l.deadline < "@schema@".store_now()
        order by l.job_id limit p_limit
    loop
        if pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'), "@schema@".attempt_key(v_lease.job_id, v_lease.run_lease))
            and "@schema@".close_lease(v_lease.job_id, v_lease.run_lease, 'rescued', "@schema@".rescue_delay(v_lease.attempt),
                v_lease.code, json_build_object('code', v_lease.code)::text, "@schema@".store_now()) = 'closed' then
            v_rescued := v_rescued || v_lease.job_id;
            -- Its worker, if it still runs, hears of it as of a cancellation.
            insert into "@schema@".cancellation (job_id, run_lease, at)
            select v_lease.job_id, v_lease.run_lease, "@schema@".store_now() where v_lease.code = 'deadline_passed'
            on conflict do nothing;
        end if;
    end loop;
    return v_rescued;
end $$;
