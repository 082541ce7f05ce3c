-- When the admission of attempts closes under an execution policy v1, exclusive; null without a policy.
create or replace function "@schema@".work_cutoff(p_work "@schema@".work) returns timestamptz
language plpgsql immutable parallel safe as $$
begin
    if p_work.plan_version is null then
        return null;
    end if;
    return least(
        p_work.accepted_at + p_work.circuit_us * interval '1 microsecond',
        p_work.accepted_at + p_work.max_elapsed_us * interval '1 microsecond',
        p_work.deadline);
end $$;
