-- The attempt that a token names, if every field of the token equals the claim item's or the lease's. Internal.
-- A materialized attempt is found as its lease, whether or not its claim row still stands.
create or replace function "@schema@".find_attempt(p_job_id bigint, p_run_lease bigint, p_claim_slot integer,
    p_receipt_id bigint, p_batch_id bigint, p_batch_index integer)
returns table (leased boolean, chapter integer, lane smallint, seq bigint, epoch bigint, claimed_at timestamptz)
language plpgsql stable as $$
begin
    return query
        select true, null::integer, null::smallint, null::bigint, l.epoch, l.claimed_at
        from "@schema@".lease l
        where l.job_id = p_job_id and l.run_lease = p_run_lease and l.claim_slot = p_claim_slot
          and l.receipt_id = p_receipt_id and l.batch_id = p_batch_id and l.batch_index = p_batch_index;
    if found then
        return;
    end if;
    return query
        select false, c.chapters[p_batch_index], c.lane, c.seqs[p_batch_index], c.epoch, c.claimed_at
        from "@schema@".claim c
        where c.slot = p_claim_slot and c.batch_id = p_batch_id and c.receipt_id = p_receipt_id
          and c.job_ids[p_batch_index] = p_job_id and c.run_leases[p_batch_index] = p_run_lease;
end $$;
