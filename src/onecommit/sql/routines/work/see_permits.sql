-- What is known of the permits of the Work, whose row the caller holds, so that none of them changes meanwhile. Internal.
-- Says itself what may_have_had_effect says: a runtime's rights on a function that an upgrade brings come after it.
create or replace function "@schema@".see_permits(p_work "@schema@".work, p_epoch bigint) returns "@schema@".permit_sight
language plpgsql stable as $$
declare
    v_sight "@schema@".permit_sight;
begin
    -- offset 0: what a permit is, is prepared once for the statement, not once for each use of it.
    select max(p.permit_id) filter (where p.is_current),
           coalesce(bool_or(p.may_have) filter (where p.is_current), false),
           coalesce(bool_or(p.may_have) filter (where not p.is_current), false)
    into v_sight
    from (
        select e.permit_id,
               e.attempt = p_work.attempt and e.lease_generation = p_work.lease_generation and e.outcome = 'granted',
               e.outcome = 'ambiguous'
                   or e.outcome = 'granted' and (e.invocation_admitted_at is not null or e.epoch <> p_epoch)
        from "@schema@".effect_permit e where e.work_id = p_work.work_id
        offset 0
    ) p (permit_id, is_current, may_have);
    return v_sight;
end $$;
