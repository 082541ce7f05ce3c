-- Guarantee: the event is decided by decide_end from what is locked, and applied by move_work: state, code, the time of a
-- next attempt, both witnesses, dispatch and history together. p_code: the application's. Internal. The caller holds the
-- rows of Work and dispatch and has closed the permit.
create or replace function "@schema@".end_attempt(
    p_work "@schema@".work, p_event text, p_code text, p_epoch bigint, p_now timestamptz,
    p_command_id text default null, p_actor text default null,
    p_digest bytea default null) returns "@schema@".work_end
language plpgsql as $$
declare
    v_unresolved constant boolean := "@schema@".has_unresolved(p_work.work_id, p_epoch);
    v_end "@schema@".work_end;
begin
    if p_event in ('exception', 'lease_expired', 'retry_before_effect', 'ambiguous', 'compatibility') then
        select n.eligible_at, n.closed into v_end.eligible_at, v_end.closed from "@schema@".next_attempt(p_work, p_now) n;
    elsif p_event = 'cutoff' then
        v_end.closed := "@schema@".admission_closed(p_work, p_now);
    end if;
    v_end.state := "@schema@".decide_end(
        p_work.safety, p_event, v_unresolved, p_work.cancel_requested_at is not null, v_end.closed);
    v_end.application_code := p_code;
    v_end.code := "@schema@".end_code(v_end.state, v_end.closed, p_work.plan_version is not null, p_code);
    perform "@schema@".move_work(p_work, v_end, p_event, p_epoch, p_now, p_command_id, p_actor, p_digest);
    return v_end;
end $$;
