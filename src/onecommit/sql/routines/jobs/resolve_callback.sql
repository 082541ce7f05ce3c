-- Guarantee: a pending callback is resolved once. A resume is kept for its attempt, or by its name for the job's next
-- attempt; any other resolution closes the attempt. Returns accepted, or without any change already_resolved, timed_out,
-- ended (the attempt, or the job, is over) or unknown. Internal, for the *_external routines; model: models/materialization.pml.
-- Locks: attempt (blocking), callback row, lease row, completion key, side rows. Raises OC006, 40001.
create or replace function "@schema@".resolve_callback(p_callback uuid, p_resolution text, p_payload json, p_delay_us bigint) returns text
language plpgsql set enable_seqscan = off set jit = off as $$
declare
    v_callback "@schema@".callback;
    v_leased boolean;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'resolving a callback needs READ COMMITTED' using errcode = 'OC006';
    end if;
    -- A callback that goes on to the next attempt, or is resolved, while we wait for a lock is found at the next turn.
    for v_turn in 1..5 loop
        select c.* into v_callback from "@schema@".callback c where c.callback_id = p_callback;
        if not found then
            return 'unknown';
        elsif v_callback.resolution is not null and v_callback.resolution <> 'timed_out' then
            return 'already_resolved';
        elsif v_callback.timeout_at <= "@schema@".store_now() then
            return 'timed_out';
        end if;
        perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".completion'),
            "@schema@".attempt_key(v_callback.job_id, v_callback.run_lease));
        v_leased := exists (
            select from "@schema@".lease l where l.job_id = v_callback.job_id and l.run_lease = v_callback.run_lease);
        if not v_leased and (v_callback.name is null or not "@schema@".is_unfinished(v_callback.job_id)) then
            -- Unless it was a resolution that ended the attempt.
            continue when exists (select from "@schema@".callback c where c.callback_id = p_callback and c.resolution is not null);
            return 'ended';
        end if;
        -- The attempt lock keeps the lease where it is, so that it can be closed after this row is known to be ours.
        update "@schema@".callback c
        set resolution = p_resolution, resolved_at = "@schema@".store_now(), payload = p_payload,
            ended = v_leased and p_resolution <> 'resumed'
        where c.callback_id = p_callback and c.run_lease = v_callback.run_lease and c.resolution is null;
        if found then
            if v_leased and p_resolution <> 'resumed' then
                perform "@schema@".close_externally(v_callback.job_id, v_callback.run_lease, p_resolution, p_payload, p_delay_us);
            else
                perform pg_notify('@schema@', 'b' || v_callback.job_id);
            end if;
            return 'accepted';
        end if;
    end loop;
    raise exception 'the callback moved from attempt to attempt' using errcode = '40001', hint = 'Retry the transaction.';
end $$;
