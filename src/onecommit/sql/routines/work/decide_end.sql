-- What an attempt's end, or an operation on Work without a live attempt, leads to. p_event: succeeded,
-- retry_before_effect, failed_terminal, ambiguous, compatibility, exception, lease_expired, cancel, disable, cutoff.
-- p_unresolved: some permit may have had an effect, the attempt's own outcome applied. p_closed: as next_attempt says.
-- No unknown outcome becomes a failure: with p_unresolved there is no way to failed or canceled_before_effect.
create or replace function "@schema@".decide_end(
    p_safety text, p_event text, p_unresolved boolean, p_cancelled boolean, p_closed text) returns text
language sql immutable parallel safe as $$
    select case
        when p_event = 'succeeded' then case when p_cancelled then 'succeeded_after_cancel_requested' else 'succeeded' end
        when p_unresolved then case
            when p_event in ('exception', 'lease_expired', 'retry_before_effect') and not p_cancelled and p_closed is null
                and p_safety in ('idempotent', 'provider_keyed') then 'retry_wait'
            else "@schema@".suspended_state(p_safety)
        end
        when p_cancelled or p_event in ('cancel', 'disable') then 'canceled_before_effect'
        when p_event in ('failed_terminal', 'cutoff') or p_closed is not null then 'failed'
        else 'retry_wait'
    end
$$;
