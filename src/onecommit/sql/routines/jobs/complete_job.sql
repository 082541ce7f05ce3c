-- Guarantee: the caller's writes and the completion of this exact attempt commit together, or the call raises and takes
-- the transaction down. No exception block: an error here must abort the caller's transaction.
-- For finalizer. Locks: schema (shared), attempt, completion key or lease row, unique_key, progress and dependant rows.
-- Raises OC001 (stale or foreign token), OC002 (savepoint), OC003 (queue not enabled), OC004 (epoch), OC005 (too old),
-- 22023, 40001 (chapter reclaimed, or a lost race under REPEATABLE READ: retry through the handler policy).
create or replace function "@schema@".complete_job(job_id bigint, run_lease bigint, claim_slot integer, receipt_id bigint,
    batch_id bigint, batch_index integer, progress jsonb) returns "@schema@".finalization_receipt
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_chapter integer;
    v_lane smallint;
    v_seq bigint;
    v_epoch bigint;
    v_claimed_at timestamptz;
    v_keyed boolean;
    v_progress json;
    v_detail text;
    v_now timestamptz;
    v_xmin xid;
begin
    -- Tested, not performed: expressions need no executor. Null only if a field of the token is null.
    if pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".store_metadata'), 0) is null
        or pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'),
            "@schema@".attempt_key(complete_job.job_id, complete_job.run_lease)) is null then
        perform "@schema@".refuse_stale();
    end if;
    -- A new statement: what the lock's last holder committed is visible from here on (READ COMMITTED).
    select c.chapters[complete_job.batch_index], c.lane, c.seqs[complete_job.batch_index], c.epoch, c.claimed_at,
           exists (select from "@schema@".unique_key u where u.job_id = complete_job.job_id),
           (select g.data from "@schema@".progress g where g.job_id = complete_job.job_id)
    into v_chapter, v_lane, v_seq, v_epoch, v_claimed_at, v_keyed, v_progress
    from "@schema@".claim c
    where c.slot = complete_job.claim_slot and c.batch_id = complete_job.batch_id and c.receipt_id = complete_job.receipt_id
      and c.job_ids[complete_job.batch_index] = complete_job.job_id
      and c.run_leases[complete_job.batch_index] = complete_job.run_lease;
    if not found then
        select l.epoch, l.claimed_at,
               exists (select from "@schema@".unique_key u where u.job_id = l.job_id),
               (select g.data from "@schema@".progress g where g.job_id = l.job_id)
        into v_epoch, v_claimed_at, v_keyed, v_progress
        from "@schema@".lease l
        where l.job_id = complete_job.job_id and l.run_lease = complete_job.run_lease and l.claim_slot = complete_job.claim_slot
          and l.receipt_id = complete_job.receipt_id and l.batch_id = complete_job.batch_id
          and l.batch_index = complete_job.batch_index;
        if not found then
            perform "@schema@".refuse_stale();
        end if;
    end if;
    v_now := "@schema@".store_now();
    if v_epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass)
        or transaction_timestamp() < greatest(v_claimed_at, v_now - interval '1 second') then
        perform "@schema@".check_finalizer(v_epoch, v_claimed_at, v_now);
    end if;
    if pg_sequence_last_value('"@schema@".caller_owned_fence'::regclass) = 0 then
        perform "@schema@".refuse_disabled(complete_job.job_id, v_lane);
    end if;
    if complete_job.progress is not null or v_progress is not null then
        v_detail := json_build_object('progress', coalesce(complete_job.progress::json, v_progress))::text;
    end if;
    -- A chapter reclaimed before this call was closed before: a retry could not change that.
    if v_chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
        -- Into the child itself: a partitioned table refuses to return xmin, and routes each row anew.
        case "@schema@".ring_slot(v_chapter)
        when 0 then
            insert into "@schema@".completion_0 (slot, lane, outcome, seq, finished_at, detail)
            values (0, v_lane, 'completed', v_seq, v_now, v_detail::json) on conflict do nothing returning xmin into v_xmin;
        when 1 then
            insert into "@schema@".completion_1 (slot, lane, outcome, seq, finished_at, detail)
            values (1, v_lane, 'completed', v_seq, v_now, v_detail::json) on conflict do nothing returning xmin into v_xmin;
        when 2 then
            insert into "@schema@".completion_2 (slot, lane, outcome, seq, finished_at, detail)
            values (2, v_lane, 'completed', v_seq, v_now, v_detail::json) on conflict do nothing returning xmin into v_xmin;
        when 3 then
            insert into "@schema@".completion_3 (slot, lane, outcome, seq, finished_at, detail)
            values (3, v_lane, 'completed', v_seq, v_now, v_detail::json) on conflict do nothing returning xmin into v_xmin;
        when 4 then
            insert into "@schema@".completion_4 (slot, lane, outcome, seq, finished_at, detail)
            values (4, v_lane, 'completed', v_seq, v_now, v_detail::json) on conflict do nothing returning xmin into v_xmin;
        when 5 then
            insert into "@schema@".completion_5 (slot, lane, outcome, seq, finished_at, detail)
            values (5, v_lane, 'completed', v_seq, v_now, v_detail::json) on conflict do nothing returning xmin into v_xmin;
        end case;
        if v_chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
            raise exception 'the chapter was reclaimed while this transaction wrote to it' using errcode = '40001',
                hint = 'Retry the transaction.';
        end if;
    end if;
    if v_xmin is null then
        v_xmin := "@schema@".complete_lease(complete_job.job_id, complete_job.run_lease, complete_job.receipt_id, v_detail, v_now);
        if v_xmin is null then
            perform "@schema@".refuse_stale();
        end if;
    end if;
    -- Inside any subtransaction, released or not, the row carries that subtransaction's id; by 32 bits, because xmin has
    -- no more.
    if v_xmin <> pg_current_xact_id()::xid then
        raise exception 'complete_job was called inside a savepoint' using errcode = 'OC002',
            hint = 'Call it at the top level of the transaction: outside begin_nested(), nested atomic() and nested '
                'conn.transaction() blocks.';
    end if;
    if v_keyed or v_detail is not null then
        perform "@schema@".release_side(array[complete_job.job_id]);
    end if;
    if pg_sequence_last_value('"@schema@".dependant_mark'::regclass) > 0 then
        perform "@schema@".release_dependants(array[complete_job.job_id], array[complete_job.job_id]);
    end if;
    return row(1, complete_job.job_id, complete_job.run_lease, complete_job.claim_slot, complete_job.receipt_id,
        complete_job.batch_id, complete_job.batch_index, 'completed', v_now, pg_current_xact_id()::text::bigint
        )::"@schema@".finalization_receipt;
end $$;
