-- Guarantee: rows of the lane that were not claimed before, up to the limit, in one new claim row that also carries the
-- lane's state: frontier F (the highest number seen), numbers below it that were not seen (old and new holes), the
-- label of the old ones and the settled generation. A row that commits late is found in its hole; a hole is dropped
-- only when every transaction that could fill it has ended. "Everything after the last number" would lose late rows.
-- Internal. Locks: lane (try), settled generations (try). Model: models/claim_settlement.pml.
create or replace function "@schema@".claim_lane(p_lane smallint, p_number_seq regclass, p_generation_seq regclass,
    p_worker bigint, p_request bigint, p_limit integer, p_now timestamptz, p_deadline timestamptz, p_epoch bigint,
    out batch "@schema@".claimed_batch, out busy boolean, out pending boolean)
language plpgsql as $$
declare
    v_head smallint;
    v_state record;
    v_drawn bigint;
    v_ended boolean := false;
    v_window int8multirange;
    v_pre_closed boolean;
    v_seen record;
    v_holes int8multirange;
    v_changed boolean;
    v_chapter integer;
begin
    busy := not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".lane'), p_lane);
    pending := false;
    if busy then
        return;
    end if;
    -- Read under the lock: no claim row of the lane is in a later chapter, so one in the head's child is the newest.
    v_head := "@schema@".ring_slot(pg_sequence_last_value('"@schema@".head_fence'::regclass)::integer);
    select c.frontier, c.old_holes, c.new_holes, c.label, c.settled into v_state
    from "@schema@".claim c where c.slot = v_head and c.lane = p_lane order by c.batch_id desc limit 1;
    if not found then
        v_state := "@schema@".lane_state(p_lane);
    end if;
    if v_state.old_holes = '{}' and v_state.new_holes = '{}' then
        v_drawn := coalesce(pg_sequence_last_value(p_number_seq), 0);
        if v_drawn <= v_state.frontier then
            return;     -- every number that was drawn has been seen
        end if;
    elsif v_state.old_holes <> '{}' then
        v_ended := "@schema@".settle_generations(p_lane, v_state.settled, v_state.label);
    end if;

    -- One number was drawn: the row may be looked up in the head's child, and looked for everywhere if it is not there.
    if v_drawn = v_state.frontier + 1 then
        select array[r.seq] as numbers, r.seq as top, 0::bigint as late, array[r.chapter] as chapters, array[r.seq] as seqs,
               array[r.job_id] as job_ids, array[r.run_lease + 1] as run_leases, array[r.attempt + 1] as attempts,
               array[r.max_attempts::integer] as max_attempts, array[r.kind] as kinds, array[r.args::text] as args,
               array[r.options::text] as options, array[r.created_at] as created_at
        into v_seen
        from "@schema@".ready r
        where r.slot = v_head and r.lane = p_lane and r.seq = v_drawn
          and not exists (select from "@schema@".pre_closed p where p.lane = p_lane and p.seq = v_drawn);
    end if;
    if v_drawn is distinct from v_state.frontier + 1 or not found then
        v_window := v_state.old_holes + v_state.new_holes;
        -- At the cap the frontier stops: each claim row carries the holes, and none is ever dropped unsettled.
        if (select count(*) from unnest(v_window)) < 2000 then
            v_window := v_window + int8multirange(int8range(v_state.frontier + 1, null));
        end if;
        v_pre_closed := exists (select from "@schema@".pre_closed p where p.lane = p_lane);
        select array_agg(r.seq) as numbers, max(r.seq) as top, count(*) filter (where r.seq <= v_state.frontier) as late,
               array_agg(r.chapter) filter (where r.runs) as chapters, array_agg(r.seq) filter (where r.runs) as seqs,
               array_agg(r.job_id) filter (where r.runs) as job_ids, array_agg(r.run_lease + 1) filter (where r.runs) as run_leases,
               array_agg(r.attempt + 1) filter (where r.runs) as attempts,
               array_agg(r.max_attempts::integer) filter (where r.runs) as max_attempts,
               array_agg(r.kind) filter (where r.runs) as kinds, array_agg(r.args::text) filter (where r.runs) as args,
               array_agg(r.options::text) filter (where r.runs) as options, array_agg(r.created_at) filter (where r.runs) as created_at
        into v_seen
        from (
            select f.*, not (v_pre_closed and exists (
                select from "@schema@".pre_closed p where p.lane = p_lane and p.seq = f.seq)) as runs
            from unnest(v_window) w, lateral (
                select * from "@schema@".ready r
                where r.lane = p_lane and r.seq >= lower(w) and r.seq < coalesce(upper(w), 9223372036854775807)
                order by r.seq limit p_limit
            ) f
            limit p_limit
        ) r;
    end if;

    v_changed := v_seen.top is not null;
    if v_changed and v_seen.late = 0 and v_seen.top - v_state.frontier = cardinality(v_seen.numbers) then
        v_state.frontier := v_seen.top;     -- the usual case: the next numbers without a gap
    elsif v_changed then
        v_holes := (select range_agg(int8range(n, n, '[]')) from unnest(v_seen.numbers) n);
        v_state.old_holes := v_state.old_holes - v_holes;
        v_state.new_holes := v_state.new_holes - v_holes;
        if v_seen.top > v_state.frontier then
            v_state.new_holes := v_state.new_holes + (int8multirange(int8range(v_state.frontier + 1, v_seen.top)) - v_holes);
            v_state.frontier := v_seen.top;
        end if;
    end if;
    if v_ended and v_seen.late < p_limit then
        v_state.settled := v_state.label;   -- what is still missing will never come
        v_state.old_holes := '{}';
        v_changed := true;
    end if;
    if isempty(v_state.old_holes) and not isempty(v_state.new_holes) then
        v_state.label := pg_sequence_last_value(p_generation_seq);
        perform setval(p_generation_seq, v_state.label + 1, true);
        v_state.old_holes := v_state.new_holes;
        v_state.new_holes := '{}';
        v_changed := true;
    end if;
    pending := not isempty(v_state.old_holes) or coalesce(pg_sequence_last_value(p_number_seq), 0) > v_state.frontier;
    if not v_changed then
        return;
    end if;

    v_chapter := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    batch.status := 'claimed';
    batch.lane := p_lane;
    batch.claim_slot := "@schema@".ring_slot(v_chapter);
    batch.batch_id := nextval('"@schema@".batch_number'::regclass);
    batch.receipt_id := "@schema@".random_receipt();
    batch.claimed_at := p_now;
    batch.deadline := p_deadline;
    batch.chapters := v_seen.chapters;
    batch.seqs := v_seen.seqs;
    batch.job_ids := v_seen.job_ids;
    batch.run_leases := v_seen.run_leases;
    batch.attempts := v_seen.attempts;
    batch.max_attempts := v_seen.max_attempts;
    batch.kinds := v_seen.kinds;
    batch.args := v_seen.args;
    batch.options := v_seen.options;
    batch.created_at := v_seen.created_at;
    insert into "@schema@".claim (slot, lane, receipt_id, batch_id, worker, request, epoch, claimed_at, deadline,
        frontier, label, settled, old_holes, new_holes, chapters, seqs, job_ids, run_leases)
    values (batch.claim_slot, p_lane, batch.receipt_id, batch.batch_id, p_worker, p_request, p_epoch, p_now, p_deadline,
        v_state.frontier, v_state.label, v_state.settled, v_state.old_holes, v_state.new_holes,
        coalesce(v_seen.chapters, '{}'), coalesce(v_seen.seqs, '{}'), coalesce(v_seen.job_ids, '{}'), coalesce(v_seen.run_leases, '{}'));
    if v_seen.seqs is null then
        batch := null;
    end if;
end $$;
