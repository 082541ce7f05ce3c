-- Whether the invocation of the Work's current attempt was admitted. Internal.
create or replace function "@schema@".is_admitted(p_work "@schema@".work) returns boolean
language plpgsql stable as $$
begin
    return exists (
        select from "@schema@".effect_permit p
        where p.work_id = p_work.work_id and p.attempt = p_work.attempt and p.lease_generation = p_work.lease_generation
          and p.invocation_admitted_at is not null
    );
end $$;
