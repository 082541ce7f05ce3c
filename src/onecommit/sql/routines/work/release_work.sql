-- Guarantee: Work that an older epoch left behind belongs to p_epoch. Where its current attempt may have had an effect, the
-- evidence moves along and the Work waits for it by its class; else it waits for its next attempt, or is failed or
-- canceled where there is none. Internal, under the locks of lock_work. Raises OC012, which undoes all of it.
create or replace function "@schema@".release_work(
    p_work "@schema@".work, p_command_id text, p_actor text, p_epoch bigint, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_permit "@schema@".effect_permit;
    v_at_once "@schema@".work := p_work;
    v_end "@schema@".work_end;
    v_moved bigint;
begin
    update "@schema@".work w set epoch = p_epoch where w.work_id = p_work.work_id and w.epoch = p_work.epoch;
    select p.* into v_permit from "@schema@".effect_permit p
    where p.work_id = p_work.work_id and p.attempt = p_work.attempt and p.lease_generation = p_work.lease_generation
      and p.outcome in ('granted', 'ambiguous');
    if v_permit.permit_id is not null then
        update "@schema@".effect_permit p
        set outcome = 'ambiguous', closed_at = coalesce(p.closed_at, p_now), epoch = p_epoch
        where p.permit_id = v_permit.permit_id and p.outcome = v_permit.outcome and p.epoch <> p_epoch;
        get diagnostics v_moved = row_count;
        if v_moved <> 1 then
            raise exception 'the permit of Work % is of this epoch, the Work is not', p_work.work_id
                using errcode = 'OC012', hint = 'The store is damaged: restore it, and rotate the epoch.';
        end if;
        v_end.state := "@schema@".suspended_state(p_work.safety);
    else
        v_at_once.initial_delay_us := 0;  -- waiting_end waits for a slot, not for a delay
        v_at_once.max_delay_us := 0;
        v_end.closed := case when p_work.attempt = 0 then "@schema@".admission_closed(p_work, p_now)
                             else ("@schema@".next_attempt(v_at_once, p_now)).closed end;
        v_end.state := "@schema@".decide_end(
            p_work.safety, 'lease_expired', "@schema@".has_unresolved(p_work.work_id, p_epoch),
            p_work.cancel_requested_at is not null, v_end.closed);
        if v_end.state = 'retry_wait' then
            v_end := "@schema@".waiting_end(p_work, p_now);
        end if;
    end if;
    v_end.code := "@schema@".end_code(v_end.state, v_end.closed, p_work.plan_version is not null, null);
    perform "@schema@".move_work(p_work, v_end, 'recovery_released', p_epoch, p_now, p_command_id, p_actor);
end $$;
