-- What is known of the permits of the Work, whose row the caller holds, so that none of them changes meanwhile. A permit
-- may have had an effect if it is ambiguous, or granted and was admitted or is of another epoch (a promotion may keep
-- the permit and lose its admission). Internal.
create or replace function "@schema@".see_permits(p_work "@schema@".work, p_epoch bigint) returns "@schema@".permit_sight
language plpgsql stable as $$
declare
    v_sight "@schema@".permit_sight;
begin
    select max(p.permit_id) filter (where c.is_current),
           coalesce(bool_or(a.may_have) filter (where c.is_current), false),
           coalesce(bool_or(a.may_have) filter (where not c.is_current), false)
    into v_sight
    from "@schema@".effect_permit p
    cross join lateral (select p.attempt = p_work.attempt and p.lease_generation = p_work.lease_generation
                               and p.outcome = 'granted') c (is_current)
    cross join lateral (select p.outcome = 'ambiguous' or p.invocation_admitted_at is not null or p.epoch <> p_epoch) a (may_have)
    where p.work_id = p_work.work_id and p.outcome in ('granted', 'ambiguous');
    return v_sight;
end $$;
