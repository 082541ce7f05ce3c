-- Guarantee: the caller's writes and the completion of this exact attempt commit together, or the call raises and takes
-- the transaction down. No exception block: an error here must abort the caller's transaction.
-- Finalizer. Locks: schema (shared), attempt, completion key or lease row, unique_key and progress rows.
-- Raises OC001 (stale or foreign token), OC002 (savepoint), OC003 (queue not enabled), OC004 (epoch), OC005 (too old), 22023,
-- 40001 (chapter reclaimed, or a lost race under REPEATABLE READ: retry through the handler policy).
create or replace function "@schema@".complete_job(job_id bigint, run_lease bigint, claim_slot integer, receipt_id bigint,
    batch_id bigint, batch_index integer, progress jsonb) returns "@schema@".finalization_receipt
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_attempt record;
    v_about record;
    v_now timestamptz;
    v_slot smallint;
    v_row tid;
    v_detail text;
begin
    -- Tested, not performed: expressions need no executor. Null only if a field of the token is null.
    if pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".store_metadata'), 0) is null
        or pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'),
            "@schema@".attempt_key(complete_job.job_id, complete_job.run_lease)) is null then
        perform "@schema@".refuse_stale();
    end if;
    -- A new statement: what the lock's last holder committed is visible from here on (READ COMMITTED).
    select c.chapters[complete_job.batch_index] as chapter, c.lane, c.seqs[complete_job.batch_index] as seq, c.epoch, c.claimed_at
    into v_attempt
    from "@schema@".claim c
    where c.slot = complete_job.claim_slot and c.batch_id = complete_job.batch_id and c.receipt_id = complete_job.receipt_id
      and c.job_ids[complete_job.batch_index] = complete_job.job_id
      and c.run_leases[complete_job.batch_index] = complete_job.run_lease;
    if not found then
        select * into v_attempt from "@schema@".find_attempt(complete_job.job_id, complete_job.run_lease,
            complete_job.claim_slot, complete_job.receipt_id, complete_job.batch_id, complete_job.batch_index) a;
        if not found then
            perform "@schema@".refuse_stale();
        end if;
    end if;
    v_slot := "@schema@".ring_slot(v_attempt.chapter);
    select m.finalization_max_age as max_age,
           (select g.data from "@schema@".progress g where g.job_id = complete_job.job_id) as progress,
           (select r.options ? 'unique' from "@schema@".ready r
            where r.slot = v_slot and r.lane = v_attempt.lane and r.seq = v_attempt.seq) as keyed
    into v_about from "@schema@".store_metadata m where m.singleton;
    v_now := "@schema@".store_now();
    if v_attempt.epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass)
        or transaction_timestamp() < greatest(v_attempt.claimed_at, v_now - v_about.max_age) then
        perform "@schema@".refuse_finalizer(v_attempt.epoch);
    end if;
    if pg_sequence_last_value('"@schema@".caller_owned_fence'::regclass) = 0 then
        perform "@schema@".refuse_disabled(complete_job.job_id, v_attempt.lane);
    end if;
    if complete_job.progress is not null or v_about.progress is not null then
        v_detail := json_build_object('progress', coalesce(complete_job.progress::json, v_about.progress))::text;
    end if;
    -- A chapter reclaimed before this call was closed before: a retry could not change that.
    if v_attempt.chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
        insert into "@schema@".completion (slot, lane, outcome, seq, finished_at, detail)
        values (v_slot, v_attempt.lane, 'completed', v_attempt.seq, v_now, v_detail::json)
        on conflict do nothing returning ctid into v_row;
        if v_attempt.chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
            raise exception 'the chapter was reclaimed while this transaction wrote to it' using errcode = '40001',
                hint = 'Retry the transaction.';
        end if;
    end if;
    if v_row is null then
        select h.o_slot, h.o_row, v_about.keyed or coalesce(h.o_options ? 'unique', false) as keyed
        into v_slot, v_row, v_about.keyed
        from "@schema@".complete_lease(complete_job.job_id, complete_job.run_lease, complete_job.receipt_id, v_detail, v_now) h;
        if v_row is null then
            perform "@schema@".refuse_stale();
        end if;
    end if;
    -- Inside any subtransaction, released or not, the row carries that subtransaction's id. By ctid, because a look-up
    -- by key causes spurious serialization failures; by 32 bits, because xmin has no more.
    if (select c.xmin <> pg_current_xact_id()::xid from "@schema@".completion c where c.slot = v_slot and c.ctid = v_row) then
        raise exception 'complete_job was called inside a savepoint' using errcode = 'OC002',
            hint = 'Call it at the top level of the transaction: outside begin_nested(), nested atomic() and nested '
                'conn.transaction() blocks.';
    end if;
    if v_about.keyed or v_detail is not null then
        perform "@schema@".release_side(array[complete_job.job_id]);
    end if;
    return row(1, complete_job.job_id, complete_job.run_lease, complete_job.claim_slot, complete_job.receipt_id,
        complete_job.batch_id, complete_job.batch_index, 'completed', v_now, pg_current_xact_id()::text::bigint
        )::"@schema@".finalization_receipt;
end $$;
