-- Why this fence does not hold a live lease of the Work at p_now: null, or 111, 110 or 105.
create or replace function "@schema@".fence_code(
    p_work "@schema@".work, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint, p_owner bigint,
    p_epoch bigint, p_now timestamptz) returns text
language sql immutable parallel safe as $$
    select case
        when p_work.work_id is null then 'ASDUR111'
        when p_work.terminal_at is not null then 'ASDUR110'
        -- Without an owner there is no lease: a caller that names none must not match it.
        when p_work.lease_owner is null
            or (p_work.attempt, p_work.lease_generation, p_work.scope_generation, p_work.lease_owner, p_work.epoch)
            is distinct from (p_attempt, p_lease_generation, p_scope_generation, p_owner, p_epoch)
            or p_now >= p_work.lease_expires_at then 'ASDUR105'
    end
$$;
