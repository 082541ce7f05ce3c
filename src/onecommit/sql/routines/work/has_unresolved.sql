-- Whether some permit of the Work may have had an effect. Internal. PL/pgSQL, as every function here that reads a
-- table: a function in SQL would be parsed and planned anew in each transaction.
create or replace function "@schema@".has_unresolved(p_work_id bigint, p_epoch bigint) returns boolean
language plpgsql stable as $$
begin
    return exists (
        select from "@schema@".effect_permit p
        where p.work_id = p_work_id
          and "@schema@".may_have_had_effect(p.outcome, p.invocation_admitted_at, p.epoch, p_epoch)
    );
end $$;
