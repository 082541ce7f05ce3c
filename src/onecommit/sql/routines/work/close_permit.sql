-- Guarantee: the permit of the Work's current attempt, if there is one, has this outcome; null decides by what is known:
-- admitted, or of another epoch: ambiguous; else nothing can have happened. Internal, under the Work's row lock.
create or replace function "@schema@".close_permit(
    p_work "@schema@".work, p_outcome text, p_epoch bigint, p_now timestamptz) returns void
language plpgsql as $$
begin
    update "@schema@".effect_permit p
    set outcome = coalesce(p_outcome, case
            when p.invocation_admitted_at is not null or p.epoch <> p_epoch then 'ambiguous' else 'proven_no_effect' end),
        closed_at = p_now
    where p.work_id = p_work.work_id and p.attempt = p_work.attempt and p.lease_generation = p_work.lease_generation
      and p.outcome = 'granted';
end $$;
