-- How many permits of the Work may have had an effect. Internal.
create or replace function "@schema@".count_unresolved(p_work_id bigint, p_epoch bigint) returns integer
language sql stable as $$
    select count(*)::integer from "@schema@".effect_permit p
    where p.work_id = p_work_id
      and "@schema@".may_have_had_effect(p.outcome, p.invocation_admitted_at, p.epoch, p_epoch)
$$;
