-- Guarantee: each attempt is closed once, and the follow-ups of those that this call closes exist if and only if they
-- are closed by it; a repeated call after a lost reply enqueues nothing again. Rows for losers as by finish_jobs.
-- For executor; it needs no producer's right. READ COMMITTED. Locks: schema (shared), then attempt by attempt in order
-- of job: the attempt (try, else 'busy'), its completion key, its side rows; then those of enqueue_jobs. Raises OC004,
-- OC006, OC007, 22023, 40001.
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
    v_open boolean;
    v_verdict text;
    v_closed integer[] := '{}';
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'close_with_follow_ups needs READ COMMITTED' using errcode = 'OC006';
    end if;
    if exists (select from unnest(p_outcomes) o where o is null or o not in ('completed', 'retried', 'failed', 'discarded', 'cancelled')) then
        raise exception 'outcomes: must be completed, retried, failed, discarded or cancelled' using errcode = '22023';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    for v_item in
        select i.*
        from unnest(p_chapters, p_lanes, p_seqs, p_job_ids, p_run_leases, p_outcomes, p_delays_us, p_codes, p_details)
            with ordinality i (chapter, lane, seq, job_id, run_lease, outcome, delay_us, code, detail, n)
        order by i.job_id, i.run_lease
    loop
        -- Who else closes attempts takes this lock too; so an attempt that is open now is closed by nobody but us, and one
        -- that is closed already with this outcome was closed, follow-ups and all, by an earlier call whose reply was lost.
        if not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'),
            "@schema@".attempt_key(v_item.job_id, v_item.run_lease)) then
            return next row(v_item.n::integer, 'busy')::"@schema@".closing_verdict;
            continue;
        end if;
        v_open := "@schema@".attempt_is_open(v_item.chapter, v_item.lane, v_item.seq, v_item.job_id, v_item.run_lease);
        if v_item.outcome = 'completed' then
            select c.verdict into v_verdict from "@schema@".complete_jobs(p_epoch, array[v_item.chapter], array[v_item.lane],
                array[v_item.seq], array[v_item.job_id], array[v_item.run_lease], array[v_item.detail],
                array(select unnest(p_side) intersect select v_item.job_id)) c;
        else
            select c.verdict into v_verdict from "@schema@".close_attempts(array[v_item.chapter], array[v_item.lane],
                array[v_item.seq], array[v_item.job_id], array[v_item.run_lease], array[v_item.outcome],
                array[v_item.delay_us], array[v_item.code], array[v_item.detail], false) c;
        end if;
        if v_verdict is not null then
            return next row(v_item.n::integer, v_verdict)::"@schema@".closing_verdict;
        elsif v_open then
            v_closed := v_closed || v_item.n::integer;
        end if;
    end loop;
    for v_place in
        select f.queue, array_agg(f.kind order by f.n) as kinds, array_agg(f.args order by f.n) as args,
               case when bool_or(f.options is not null)
                   then jsonb_agg(coalesce(f.options::jsonb, '{}') order by f.n) end as options
        from unnest(p_owners, p_queues, p_kinds, p_args, p_options) with ordinality f (owner, queue, kind, args, options, n)
        where f.owner = any (v_closed)
        group by f.queue order by f.queue
    loop
        perform "@schema@".enqueue_jobs(v_place.queue, v_place.kinds, v_place.args, v_place.options, p_epoch);
    end loop;
end $$;
