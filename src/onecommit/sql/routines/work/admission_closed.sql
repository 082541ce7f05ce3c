-- Why no attempt may be admitted at p_now: null, or deadline, circuit or elapsed. Equality is closed, and what was once
-- closed stays so, should the clock step back. Of cutoffs that coincide the deadline is named. PL/pgSQL, as work_cutoff:
-- a sum of a time and an interval is not immutable to the planner, so a function in SQL would be planned at each call.
create or replace function "@schema@".admission_closed(p_work "@schema@".work, p_now timestamptz) returns text
language plpgsql immutable parallel safe as $$
declare
    v_cutoff pg_catalog.timestamptz;
begin
    if p_work.execution_admission_closed_reason is not null or p_work.execution_deadline_reached_at is not null then
        return coalesce(p_work.execution_admission_closed_reason, 'deadline');
    end if;
    if p_work.plan_version is null then
        return null;
    end if;
    v_cutoff := "@schema@".work_cutoff(p_work);
    return case
        when p_now < v_cutoff then null
        when p_work.deadline = v_cutoff then 'deadline'
        when p_work.accepted_at + p_work.circuit_us * interval '1 microsecond' = v_cutoff then 'circuit'
        else 'elapsed'
    end;
end $$;
