-- Guarantee: the caller's writes and the completion of this exact attempt commit together, or the call raises and takes
-- the transaction down. No exception block: an error here must abort the caller's transaction.
-- Finalizer. Locks: schema (shared), attempt, completion key or lease row, unique_key and progress rows.
-- Raises OC001 (stale or foreign token), OC002 (savepoint), OC004 (epoch), OC005 (transaction too old), 22023,
-- 40001 (chapter reclaimed, or a lost race under REPEATABLE READ: retry through the handler policy).
create or replace function "@schema@".complete_job(job_id bigint, run_lease bigint, claim_slot integer, receipt_id bigint,
    batch_id bigint, batch_index integer, progress jsonb) returns "@schema@".finalization_receipt
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
    v_attempt record;
    v_now timestamptz;
    v_slot smallint;
    v_row tid;
    v_options jsonb;
    v_detail text;
begin
    perform pg_advisory_xact_lock_shared("@schema@".schema_lock_class(), 0);
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'),
        "@schema@".attempt_key(complete_job.job_id, complete_job.run_lease));
    -- A new statement: what the lock's last holder committed is visible from here on (READ COMMITTED).
    select * into v_attempt from "@schema@".find_attempt(complete_job.job_id, complete_job.run_lease,
        complete_job.claim_slot, complete_job.receipt_id, complete_job.batch_id, complete_job.batch_index) a;
    if not found then
        perform "@schema@".refuse_stale();
    end if;
    perform "@schema@".check_finalizer(v_attempt.epoch, v_attempt.claimed_at);
    v_now := "@schema@".store_now();
    if complete_job.progress is not null then
        v_detail := jsonb_build_object('progress', complete_job.progress)::text;
    else
        v_detail := ("@schema@".hydrate_details(array[complete_job.job_id], array[null::text]))[1];
    end if;
    if not v_attempt.leased then
        -- Reclaimed before this call, so closed before: a retry could not change that.
        if v_attempt.chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
            perform "@schema@".refuse_stale();
        end if;
        v_slot := "@schema@".ring_slot(v_attempt.chapter);
        insert into "@schema@".completion (slot, lane, outcome, seq, finished_at, detail)
        values (v_slot, v_attempt.lane, 'completed', v_attempt.seq, v_now, v_detail::json)
        on conflict do nothing returning ctid into v_row;
        if not found then
            perform "@schema@".refuse_stale();
        end if;
        if v_attempt.chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
            raise exception 'the chapter was reclaimed while this transaction wrote to it' using errcode = '40001',
                hint = 'Retry the transaction.';
        end if;
        select r.options into v_options from "@schema@".ready r
        where r.slot = v_slot and r.lane = v_attempt.lane and r.seq = v_attempt.seq;
    else
        select h.o_slot, h.o_row, h.o_options into v_slot, v_row, v_options
        from "@schema@".complete_lease(complete_job.job_id, complete_job.run_lease, v_detail, v_now) h;
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
    if v_options ? 'unique' or v_detail is not null then
        perform "@schema@".release_side(array[complete_job.job_id]);
    end if;
    return row(1, complete_job.job_id, complete_job.run_lease, complete_job.claim_slot, complete_job.receipt_id,
        complete_job.batch_id, complete_job.batch_index, 'completed', v_now, pg_current_xact_id()::text::bigint
        )::"@schema@".finalization_receipt;
end $$;
