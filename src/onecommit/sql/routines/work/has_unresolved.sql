-- Whether some permit of the Work may have had an effect: it is ambiguous, or granted and was admitted or is of another
-- epoch (a promotion may keep the permit and lose its admission). Internal. PL/pgSQL, as every function here that reads a
-- table: a function in SQL would be parsed and planned anew in each transaction.
create or replace function "@schema@".has_unresolved(p_work_id bigint, p_epoch bigint) returns boolean
language plpgsql stable as $$
begin
    return exists (
        select from "@schema@".effect_permit p
        where p.work_id = p_work_id and p.outcome in ('granted', 'ambiguous')
          and (p.outcome = 'ambiguous' or p.invocation_admitted_at is not null or p.epoch <> p_epoch)
    );
end $$;
