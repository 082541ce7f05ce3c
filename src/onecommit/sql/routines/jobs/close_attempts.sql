-- The closing statement of finish_jobs, rescue_jobs and close_with_follow_ups; see finish_jobs for what it guarantees.
-- What hangs on the jobs that end, their keys, progress and dependants, is released at last and for all at once. Internal.
create or replace function "@schema@".close_attempts(p_chapters integer[], p_lanes smallint[], p_seqs bigint[],
    p_job_ids bigint[], p_run_leases bigint[], p_outcomes text[], p_delays_us bigint[], p_codes text[], p_details text[],
    p_lock boolean) returns setof "@schema@".closing_verdict
language plpgsql as $$
declare
    v_now constant timestamptz := "@schema@".store_now();
    v_tail constant bigint := pg_sequence_last_value('"@schema@".tail_fence'::regclass);
    v_busy integer[] := '{}';
    v_won integer[];
    v_ended bigint[] := '{}';
    v_completed bigint[] := '{}';
    v_soonest timestamptz;
    v_item record;
    v_verdict text;
begin
    if p_lock then
        for v_item in select i.n, i.job_id, i.run_lease from unnest(p_job_ids, p_run_leases) with ordinality i (job_id, run_lease, n) loop
            if not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'),
                "@schema@".attempt_key(v_item.job_id, v_item.run_lease)) then
                v_busy := v_busy || v_item.n::integer;
            end if;
        end loop;
    end if;
    with item as (
        select i.n::integer, r.*, l.queue, l.priority, i.detail::json, i.code, i.delay_us,
               "@schema@".final_outcome(i.outcome::"@schema@".outcome, r.attempt + 1, r.max_attempts) as outcome,
               i.outcome = 'rescued' and r.attempt + 1 >= r.max_attempts as exhausted,
               (r.attempt + case when i.outcome = 'snoozed' then 0 else 1 end)::smallint as used
        from unnest(p_chapters, p_lanes, p_seqs, p_outcomes, p_delays_us, p_codes, p_details)
            with ordinality i (chapter, lane, seq, outcome, delay_us, code, detail, n)
        -- Lateral and limited, so that whatever the statistics say each row is looked up by its whole key: a plan made
        -- while the chapter was small would read the lane for each item.
        cross join lateral (
            select r.* from "@schema@".ready r
            where r.slot = "@schema@".ring_slot(i.chapter) and r.lane = i.lane and r.seq = i.seq limit 1
        ) r
        join "@schema@".lane l on l.lane = i.lane
        where i.chapter >= v_tail and i.n <> all (v_busy)
    ), closed as (
        insert into "@schema@".completion (slot, lane, outcome, seq, finished_at, detail)
        select i.slot, i.lane, i.outcome, i.seq, v_now, i.detail
        from item i order by i.lane, i.seq
        on conflict do nothing
        returning slot, lane, seq
    ), won as (
        -- "is true" keeps this a hashed look-up: as a join it is planned for one row, and quadratic in the batch.
        select i.* from item i where ((i.slot, i.lane, i.seq) in (select c.slot, c.lane, c.seq from closed c)) is true
    ), again as (
        insert into "@schema@".scheduled (job_id, run_at, queue, priority, created_at, run_lease, attempt, max_attempts, kind, args, options)
        select w.job_id, v_now + coalesce(w.delay_us, 0) * interval '1 microsecond', w.queue, w.priority, w.created_at,
               w.run_lease + 1, w.used, w.max_attempts, w.kind, w.args, w.options
        from won w where w.outcome in ('retried', 'snoozed', 'rescued') and not w.exhausted
        returning run_at
    ), dead as (
        insert into "@schema@".dead_letter (job_id, died_at, outcome, code, detail, queue, priority, created_at, run_lease,
            attempt, max_attempts, kind, args, options)
        select w.job_id, v_now, w.outcome, w.code, w.detail, w.queue, w.priority, w.created_at, w.run_lease + 1,
               w.used, w.max_attempts, w.kind, w.args, w.options
        from won w where w.outcome in ('failed', 'discarded') or w.exhausted
    )
    select array_agg(w.n), coalesce(array_agg(w.job_id) filter (where w.outcome in ('completed', 'failed', 'discarded', 'cancelled') or w.exhausted), '{}'),
           coalesce(array_agg(w.job_id) filter (where w.outcome = 'completed'), '{}'), (select min(a.run_at) from again a)
    into v_won, v_ended, v_completed, v_soonest from won w;
    perform "@schema@".require_chapters(p_chapters, v_tail);
    if v_soonest < v_now + interval '10 seconds' then
        perform pg_notify('@schema@', 's');
    end if;
    for v_item in
        select i.n::integer, i.chapter, i.job_id, i.run_lease, i.outcome::"@schema@".outcome as wanted, i.delay_us, i.code, i.detail,
               c.outcome as found, i.n = any (v_busy) as busy
        from unnest(p_chapters, p_lanes, p_seqs, p_job_ids, p_run_leases, p_outcomes, p_delays_us, p_codes, p_details)
            with ordinality i (chapter, lane, seq, job_id, run_lease, outcome, delay_us, code, detail, n)
        left join lateral (
            select c.outcome from "@schema@".completion c
            where c.slot = "@schema@".ring_slot(i.chapter) and c.lane = i.lane and c.seq = i.seq limit 1
        ) c on true
        where v_won is null or i.n <> all (v_won)
        order by i.n
    loop
        v_verdict := case when v_item.busy then 'busy' when v_item.chapter < v_tail then 'recycled'
            when v_item.found in (v_item.wanted, "@schema@".final_outcome(v_item.wanted, 1, 1)) then 'closed' else 'stale' end;
        if v_verdict = 'recycled' or v_item.found = 'materialized' and not v_item.busy then
            v_verdict := coalesce("@schema@".close_lease(v_item.job_id, v_item.run_lease, v_item.wanted, v_item.delay_us,
                v_item.code, v_item.detail, v_now), v_verdict);
        end if;
        if v_verdict = 'ended' then
            v_ended := v_ended || v_item.job_id;
            v_completed := v_completed || array(select v_item.job_id where v_item.wanted = 'completed');
        elsif v_verdict <> 'closed' then
            return next row(v_item.n, v_verdict)::"@schema@".closing_verdict;
        end if;
    end loop;
    if v_ended <> '{}' then
        perform "@schema@".release_side(v_ended);
        perform "@schema@".release_dependants(v_ended, v_completed);
    end if;
end $$;
