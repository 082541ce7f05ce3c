-- Guarantee: the job's waiting or running attempt is closed as cancelled; a waiting row is passed over by claims. Null
-- when the job has no such attempt, or it moved meanwhile. Internal.
-- Locks: attempt (blocking: a caller's commit in flight decides first), then completion key or lease row.
create or replace function "@schema@".cancel_attempt(p_job_id bigint) returns text
language plpgsql as $$
declare
    v_open record;
    v_tail constant bigint := pg_sequence_last_value('"@schema@".tail_fence'::regclass);
begin
    select o.* into v_open from "@schema@".open_attempt(p_job_id) o;
    if not found then
        return null;
    end if;
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'), "@schema@".attempt_key(p_job_id, v_open.run_lease));
    if v_open.leased then
        -- close_lease takes a cancellation by somebody else for a repeated call.
        if not exists (select from "@schema@".lease l where l.job_id = p_job_id and l.run_lease = v_open.run_lease)
            or "@schema@".close_lease(p_job_id, v_open.run_lease, 'cancelled', null, null, null, "@schema@".store_now()) is distinct from 'closed' then
            return null;
        end if;
    else
        insert into "@schema@".completion (slot, lane, outcome, seq, finished_at)
        values ("@schema@".ring_slot(v_open.chapter), v_open.lane, 'cancelled', v_open.seq, "@schema@".store_now())
        on conflict do nothing;
        if not found then
            return null;
        end if;
        perform "@schema@".require_chapters(array[v_open.chapter], v_tail);
        if not v_open.claimed then
            insert into "@schema@".pre_closed (lane, seq, chapter) values (v_open.lane, v_open.seq, v_open.chapter) on conflict do nothing;
        end if;
        perform "@schema@".release_side(array[p_job_id]);
    end if;
    -- Also for a row that looked unclaimed: a claim that has not committed yet may hold it.
    insert into "@schema@".cancellation (job_id, run_lease, at) values (p_job_id, v_open.run_lease, "@schema@".store_now())
    on conflict do nothing;
    return 'cancelled';
end $$;
