-- The newest permit of the Work that may have had an effect, or null: evidence is about this one. Internal.
create or replace function "@schema@".unresolved_permit(p_work_id bigint, p_epoch bigint) returns "@schema@".effect_permit
language sql stable as $$
    select p from "@schema@".effect_permit p
    where p.work_id = p_work_id
      and "@schema@".may_have_had_effect(p.outcome, p.invocation_admitted_at, p.epoch, p_epoch)
    order by p.permit_id desc limit 1
$$;
