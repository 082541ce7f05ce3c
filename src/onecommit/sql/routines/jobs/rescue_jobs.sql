-- Guarantee: attempts of dead workers and attempts past their deadline are closed as rescued, which counts as an
-- attempt: the job is scheduled again, or ends in the dead letters when it was the last. At most p_limit a call,
-- because advisory locks are finite. An attempt whose lock is held (a caller's commit may be in flight) is left for the
-- next call. For maintenance. READ COMMITTED. Locks: schema (shared), worker (exclusive, try), attempts (try),
-- completion keys, lease rows, side and dependant rows. Raises OC004, OC006, 40001.
create or replace function "@schema@".rescue_jobs(p_window_us bigint, p_limit integer, p_epoch bigint)
returns table (rescued integer, more boolean, job_ids bigint[])
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_open record;
    v_limit constant integer := least(p_limit, 500);
    v_lost integer[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'rescue_jobs needs READ COMMITTED' using errcode = 'OC006';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".declare_dead(p_window_us * interval '1 microsecond', p_epoch);
    select array_agg(o.chapter) as chapters, array_agg(o.lane) as lanes, array_agg(o.seq) as seqs,
           array_agg(o.job_id) as job_ids, array_agg(o.run_lease) as run_leases,
           array_agg('rescued'::text) as outcomes, array_agg("@schema@".rescue_delay(o.attempt)) as delays,
           array_agg(o.code) as codes, array_agg(json_build_object('code', o.code)::text) as details, count(*)::integer as n
    into v_open from (select * from "@schema@".open_claims(v_limit) union all select * from "@schema@".open_leases(v_limit)) o;
    rescued := v_open.n;
    if rescued > 0 then
        select coalesce(array_agg(c.item), '{}') into v_lost from "@schema@".close_attempts(v_open.chapters, v_open.lanes, v_open.seqs, v_open.job_ids,
            v_open.run_leases, v_open.outcomes, v_open.delays, v_open.codes, v_open.details, true) c;
        rescued := rescued - cardinality(v_lost);
        job_ids := array(select i.job_id from unnest(v_open.job_ids) with ordinality i (job_id, n) where i.n <> all (v_lost));
        -- The workers of those attempts, if they still run, hear of it as of a cancellation.
        insert into "@schema@".cancellation (job_id, run_lease, at)
        select i.job_id, i.run_lease, "@schema@".store_now() from unnest(v_open.job_ids, v_open.run_leases, v_open.codes) i (job_id, run_lease, code)
        where i.code = 'deadline_passed' order by 1, 2
        on conflict do nothing;
    end if;
    job_ids := coalesce(job_ids, '{}');
    more := rescued >= v_limit;
    if not more then
        perform "@schema@".forget_workers();
        perform "@schema@".enable_caller_owned();
        perform "@schema@".expire_callbacks(500);
    end if;
    return next;
end $$;
