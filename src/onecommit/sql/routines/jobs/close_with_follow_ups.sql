-- Guarantee: each attempt is closed once, and the follow-ups of those that this call closes exist if and only if they
-- are closed by it; a repeated call after a lost reply enqueues nothing again. Rows for losers as by finish_jobs.
-- For executor; it needs no producer's right. READ COMMITTED. Locks: schema (shared), attempts (try, else 'busy'), then
-- those of finish_jobs, then those of enqueue_jobs. Raises OC004, OC006, OC007, 22023, 40001.
create or replace function "@schema@".close_with_follow_ups(p_epoch bigint, p_chapters integer[], p_lanes smallint[],
    p_seqs bigint[], p_job_ids bigint[], p_run_leases bigint[], p_outcomes text[], p_delays_us bigint[], p_codes text[],
    p_details text[], p_side bigint[],
    p_owners integer[], p_queues text[], p_kinds text[], p_args text[], p_options text[])
returns setof "@schema@".closing_verdict
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    v_item record;
    v_place record;
    v_items record;
    v_verdict "@schema@".closing_verdict;
    v_open integer[] := '{}';
    v_held integer[] := '{}';
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'close_with_follow_ups needs READ COMMITTED' using errcode = 'OC006';
    end if;
    if exists (select from unnest(p_outcomes) o where o is null or o not in ('completed', 'retried', 'failed', 'discarded', 'cancelled')) then
        raise exception 'outcomes: must be completed, retried, failed, discarded or cancelled' using errcode = '22023';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    for v_item in
        select i.* from unnest(p_chapters, p_lanes, p_seqs, p_job_ids, p_run_leases)
            with ordinality i (chapter, lane, seq, job_id, run_lease, n)
    loop
        -- Who else closes attempts takes this lock too; so an attempt that is open now is closed by nobody but us, and one
        -- that is closed already with this outcome was closed, follow-ups and all, by an earlier call whose reply was lost.
        if not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'),
            "@schema@".attempt_key(v_item.job_id, v_item.run_lease)) then
            return next row(v_item.n::integer, 'busy')::"@schema@".closing_verdict;
            continue;
        end if;
        v_held := v_held || v_item.n::integer;
        if "@schema@".attempt_is_open(v_item.chapter, v_item.lane, v_item.seq, v_item.job_id, v_item.run_lease) then
            v_open := v_open || v_item.n::integer;
        end if;
    end loop;
    select array_agg(i.chapter order by i.n) as chapters, array_agg(i.lane order by i.n) as lanes, array_agg(i.seq order by i.n) as seqs,
           array_agg(i.job_id order by i.n) as job_ids, array_agg(i.run_lease order by i.n) as run_leases,
           array_agg(i.outcome order by i.n) as outcomes, array_agg(i.delay_us order by i.n) as delays,
           array_agg(i.code order by i.n) as codes,
           array_agg(case when i.outcome = 'completed' and i.job_id = any (p_side)
               then ("@schema@".hydrate_details(array[i.job_id], array[i.detail]))[1] else i.detail end order by i.n) as details
    into v_items
    from unnest(p_chapters, p_lanes, p_seqs, p_job_ids, p_run_leases, p_outcomes, p_delays_us, p_codes, p_details)
        with ordinality i (chapter, lane, seq, job_id, run_lease, outcome, delay_us, code, detail, n)
    where i.n = any (v_held);
    for v_verdict in
        select c.* from "@schema@".close_attempts(v_items.chapters, v_items.lanes, v_items.seqs, v_items.job_ids,
            v_items.run_leases, v_items.outcomes, v_items.delays, v_items.codes, v_items.details, false) c
    loop
        v_open := array_remove(v_open, v_held[v_verdict.item]);
        return next row(v_held[v_verdict.item], v_verdict.verdict)::"@schema@".closing_verdict;
    end loop;
    for v_place in
        select f.queue, array_agg(f.kind order by f.n) as kinds, array_agg(f.args order by f.n) as args,
               case when bool_or(f.options is not null)
                   then jsonb_agg(coalesce(f.options::jsonb, '{}') order by f.n) end as options
        from unnest(p_owners, p_queues, p_kinds, p_args, p_options) with ordinality f (owner, queue, kind, args, options, n)
        where f.owner = any (v_open)
        group by f.queue order by f.queue
    loop
        perform "@schema@".enqueue_jobs(v_place.queue, v_place.kinds, v_place.args, v_place.options, p_epoch);
    end loop;
end $$;
