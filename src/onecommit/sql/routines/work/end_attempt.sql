-- Guarantee: the event is decided by decide_end from what is locked, and applied by move_work: state, code, the time of a
-- next attempt, both witnesses, dispatch, the outcome of the attempt's permit and history together. p_sight: what
-- see_permits says. p_code: the application's. Internal. The caller holds the Work's row.
create or replace function "@schema@".end_attempt(
    p_work "@schema@".work, p_sight "@schema@".permit_sight, p_event text, p_code text, p_epoch bigint, p_now timestamptz,
    p_command_id text default null, p_actor text default null,
    p_digest bytea default null) returns "@schema@".work_end
language plpgsql as $$
declare
    v_outcome constant pg_catalog.text := case
        when p_event = 'succeeded' then 'known_succeeded'
        when p_event = 'retry_before_effect' then 'proven_no_effect'
        -- A report that does not know is taken at its word, also where no admission stands.
        when p_sight.admitted or p_sight.granted is not null
            and p_event in ('exception', 'ambiguous', 'failed_terminal', 'compatibility') then 'ambiguous'
        else 'proven_no_effect'
    end;
    v_end "@schema@".work_end;
    v_done boolean;
begin
    if p_event in ('exception', 'lease_expired', 'retry_before_effect', 'ambiguous', 'compatibility') then
        select n.eligible_at, n.closed into v_end.eligible_at, v_end.closed from "@schema@".next_attempt(p_work, p_now) n;
    elsif p_event = 'cutoff' then
        v_end.closed := "@schema@".admission_closed(p_work, p_now);
    end if;
    v_end.state := "@schema@".decide_end(
        p_work.safety, p_event, p_sight.others or v_outcome = 'ambiguous', p_work.cancel_requested_at is not null,
        v_end.closed);
    v_end.application_code := p_code;
    v_end.code := "@schema@".end_code(v_end.state, v_end.closed, p_work.plan_version is not null, p_code);
    v_done := "@schema@".move_work(
        p_work, v_end, p_event, p_epoch, p_now, p_command_id, p_actor, p_digest, p_sight.granted, v_outcome);
    return v_end;
end $$;
