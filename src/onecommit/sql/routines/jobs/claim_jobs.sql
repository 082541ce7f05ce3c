-- Guarantee: each committed ready row is handed out exactly once; the same (worker, request) returns the same batches.
-- For executor. READ COMMITTED only: each look must be a new snapshot taken after its locks.
-- Locks: schema (shared), request, worker (shared), then lane by lane: lane (try), settled generations (try).
-- Raises OC003 (a worker without caller_owned_v1, a queue that is enabled for it), OC004, OC006, OC008, 22023.
create or replace function "@schema@".claim_jobs(p_worker bigint, p_request bigint, p_queue text, p_limit integer,
    p_lifetime_us bigint, p_sleep boolean, p_epoch bigint) returns setof "@schema@".claimed_batch
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    v_now timestamptz;
    v_again boolean;
    v_paused boolean;
    v_lanes "@schema@".lane[];
    v_lane "@schema@".lane;
    v_claim record;
    v_mark bigint;
    v_left integer := p_limit;
    v_busy boolean := false;
    v_pending boolean := false;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'claim_jobs needs READ COMMITTED' using errcode = 'OC006';
    end if;
    if p_limit is null or p_limit not between 1 and 10000 or p_request is null or p_lifetime_us <= 0 then
        raise exception 'limit: must be 1 to 10000; request: must not be null; lifetime_us: must be positive' using errcode = '22023';
    end if;
    -- Tested, not performed: expressions need no executor.
    if pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".store_metadata'), 0) is null
        or coalesce(p_epoch <> nullif(pg_sequence_last_value('"@schema@".epoch_fence'::regclass), 0), true) then
        perform "@schema@".enter_runtime(p_epoch);
    end if;
    -- Under its lock the incarnation cannot be declared dead before this transaction ends: no claim commits behind a
    -- rescue that has already looked.
    if pg_advisory_xact_lock("@schema@".lock_class('"@schema@".claim'), "@schema@".attempt_key(p_worker, p_request)) is null
        or pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".worker'), hashint8(p_worker)) is null then
        perform "@schema@".refuse_ended(p_worker);     -- a worker that is null
    end if;
    -- A new statement: what the locks' last holders committed is visible from here on.
    select exists (select from "@schema@".claim c where c.worker = p_worker and c.request = p_request and c.seqs <> '{}'),
           (select q.paused from "@schema@".queue q where q.queue = p_queue),
           array(select l from "@schema@".lane l where l.queue = p_queue)
    into v_again, v_paused, v_lanes
    from "@schema@".worker w where w.worker = p_worker and w.ended_at is null;
    if not found then
        perform "@schema@".refuse_ended(p_worker);
    end if;
    -- After p_sleep = true, an enqueue into the queue notifies for ten seconds unless a woken worker passes false. Set before
    -- the look: a producer that read the mark earlier has drawn its number earlier, so the claim answers 'pending' and the
    -- worker does not sleep.
    if p_sleep is not null then
        v_mark := case when p_sleep then (extract(epoch from clock_timestamp()) * 1000)::bigint + 10000 else 0 end;
        foreach v_lane in array v_lanes loop
            if pg_sequence_last_value(v_lane.sleeper_seq) is distinct from v_mark then
                v_mark := setval(v_lane.sleeper_seq, v_mark, true);
            end if;
        end loop;
    end if;
    if v_again then
        return query select a.* from "@schema@".adopt_claim(p_worker, p_request) a;
        return next "@schema@".claim_summary('more');
        return;
    end if;
    if pg_sequence_last_value('"@schema@".caller_owned_fence'::regclass) = 0 then
        perform "@schema@".refuse_incapable(p_worker, p_queue);
    end if;
    if v_paused then
        return next "@schema@".claim_summary('paused');
        return;
    end if;
    v_now := "@schema@".store_now();
    if cardinality(v_lanes) > 1 then
        v_lanes := array(select l from "@schema@".lanes_in_order(p_queue, v_now) l);
    end if;
    foreach v_lane in array v_lanes loop
        v_claim := "@schema@".claim_lane(v_lane.lane, v_lane.number_seq, v_lane.generation_seq, p_worker, p_request,
            v_left, v_now, v_now + p_lifetime_us * interval '1 microsecond', p_epoch);
        v_busy := v_busy or v_claim.busy;
        v_pending := v_pending or v_claim.pending;
        if (v_claim.batch).seqs is not null then
            return next v_claim.batch;
            v_left := v_left - cardinality((v_claim.batch).seqs);
            exit when v_left <= 0;
        end if;
    end loop;
    return next "@schema@".claim_summary(
        case when v_left <= 0 then 'more' when v_busy then 'busy' when v_pending then 'pending' else 'empty' end);
end $$;
