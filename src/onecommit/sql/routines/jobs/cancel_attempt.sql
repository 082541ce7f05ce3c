-- Guarantee: the job's waiting or running attempt is closed as cancelled; a waiting row is passed over by claims. False
-- when it has none, or it moved since lock_attempts found it there. Internal, under the attempt's lock; the caller
-- releases what hangs on the job. p_tail: read before the look. Locks: completion key or lease row.
create or replace function "@schema@".cancel_attempt(p_job_id bigint, p_leased boolean, p_chapter integer, p_lane smallint,
    p_seq bigint, p_run_lease bigint, p_claimed boolean, p_tail bigint) returns boolean
language plpgsql as $$
begin
    if p_run_lease is null then
        return false;
    elsif p_leased then
        -- 'closed' would be a cancellation by somebody else.
        if "@schema@".close_lease(p_job_id, p_run_lease, 'cancelled', null, null, null, "@schema@".store_now()) is distinct from 'ended' then
            return false;
        end if;
    else
        insert into "@schema@".completion (slot, lane, outcome, seq, finished_at)
        values ("@schema@".ring_slot(p_chapter), p_lane, 'cancelled', p_seq, "@schema@".store_now())
        on conflict do nothing;
        if not found then
            return false;
        end if;
        perform "@schema@".require_chapters(array[p_chapter], p_tail);
        if not p_claimed then
            insert into "@schema@".pre_closed (lane, seq, chapter) values (p_lane, p_seq, p_chapter) on conflict do nothing;
        end if;
    end if;
    -- Also for a row that looked unclaimed: a claim that has not committed yet may hold it.
    insert into "@schema@".cancellation (job_id, run_lease, at) values (p_job_id, p_run_lease, "@schema@".store_now())
    on conflict do nothing;
    return true;
end $$;
