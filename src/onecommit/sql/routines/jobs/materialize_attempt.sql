-- Guarantee: the open attempt's authority moves from its claim item to a lease row with the whole body and every token
-- field; token and run lease stay. False when it is closed, or its lock is held. Internal. Locks: attempt (try).
create or replace function "@schema@".materialize_attempt(p_claim_slot integer, p_batch_id bigint, p_batch_index integer) returns boolean
language plpgsql as $$
declare
    v_claim "@schema@".claim;
    v_now constant timestamptz := "@schema@".store_now();
    v_slot smallint;
begin
    select c.* into v_claim from "@schema@".claim c where c.slot = p_claim_slot and c.batch_id = p_batch_id;
    if v_claim.job_ids[p_batch_index] is null or not pg_try_advisory_xact_lock(
        "@schema@".lock_class('"@schema@".completion'),
        "@schema@".attempt_key(v_claim.job_ids[p_batch_index], v_claim.run_leases[p_batch_index])) then
        return false;
    end if;
    v_slot := "@schema@".ring_slot(v_claim.chapters[p_batch_index]);
    insert into "@schema@".completion (slot, lane, outcome, seq, finished_at)
    values (v_slot, v_claim.lane, 'materialized', v_claim.seqs[p_batch_index], v_now)
    on conflict do nothing;
    if not found then
        return false;
    end if;
    perform "@schema@".require_chapters(array[v_claim.chapters[p_batch_index]], 0);
    insert into "@schema@".lease (job_id, run_lease, claim_slot, receipt_id, batch_id, batch_index, epoch, worker, claimed_at,
        deadline, queue, priority, created_at, attempt, max_attempts, kind, args, options)
    select r.job_id, r.run_lease + 1, p_claim_slot, v_claim.receipt_id, v_claim.batch_id, p_batch_index, v_claim.epoch,
           v_claim.worker, v_claim.claimed_at, v_claim.deadline, l.queue, l.priority, r.created_at, r.attempt, r.max_attempts,
           r.kind, r.args, r.options
    from "@schema@".ready r join "@schema@".lane l on l.lane = r.lane
    where r.slot = v_slot and r.lane = v_claim.lane and r.seq = v_claim.seqs[p_batch_index];
    return true;
end $$;
