-- Guarantee: each attempt is completed once; a repeated call after a lost reply is success. Rows are returned only for
-- losers: 'stale' (another outcome was recorded), 'recycled' (the chapter is gone), 'busy' (a lease whose attempt lock
-- is held: ask again). An ordinary job's batch path; caller-owned attempts use complete_job. For executor. Locks:
-- schema (shared), completion keys in order, attempts of leases (try), side and dependant rows. Raises OC004, 40001 (a
-- chapter was reclaimed meanwhile: repeat the call).
create or replace function "@schema@".complete_jobs(p_epoch bigint, p_chapters integer[], p_lanes smallint[], p_seqs bigint[],
    p_job_ids bigint[], p_run_leases bigint[], p_details text[], p_side bigint[]) returns setof "@schema@".closing_verdict
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    v_now timestamptz;
    v_tail bigint;
    v_closed bigint;
    v_verdict "@schema@".closing_verdict;
    v_side bigint[] := p_side;
    v_lost bigint[] := '{}';
    v_completed bigint[];
    v_details text[] := p_details;
begin
    perform "@schema@".enter_runtime(p_epoch);
    v_now := "@schema@".store_now();
    if cardinality(p_side) > 0 then
        v_details := "@schema@".hydrate_details(p_job_ids, p_details);
    end if;
    v_tail := pg_sequence_last_value('"@schema@".tail_fence'::regclass);
    insert into "@schema@".completion (slot, lane, outcome, seq, finished_at, detail)
    select "@schema@".ring_slot(i.chapter), i.lane, 'completed', i.seq, v_now, i.detail::json
    from unnest(p_chapters, p_lanes, p_seqs, v_details) i (chapter, lane, seq, detail)
    where i.chapter >= v_tail
    order by 2, 4
    on conflict do nothing;
    get diagnostics v_closed = row_count;
    perform "@schema@".require_chapters(p_chapters, v_tail);
    if v_closed < cardinality(p_seqs) then
        for v_verdict in select * from "@schema@".judge_conflicts(p_chapters, p_lanes, p_seqs, p_job_ids, p_run_leases,
            'completed', v_details, v_tail, v_now) j
        loop
            if v_verdict.verdict = 'ended' then
                v_side := v_side || p_job_ids[v_verdict.item];
            else
                v_lost := v_lost || p_job_ids[v_verdict.item];
                return next v_verdict;
            end if;
        end loop;
    end if;
    if cardinality(v_side) > 0 then
        perform "@schema@".release_side(array(select unnest(v_side) except select unnest(v_lost)));
    end if;
    if pg_sequence_last_value('"@schema@".dependant_mark'::regclass) > 0 then
        v_completed := array(select unnest(p_job_ids) except select unnest(v_lost));
        perform "@schema@".release_dependants(v_completed, v_completed);
    end if;
end $$;
