-- Why no attempt may be admitted at p_now: null, or deadline, circuit or elapsed. Equality is closed, and what was once
-- closed stays so, should the clock step back. Of cutoffs that coincide the deadline is named.
create or replace function "@schema@".admission_closed(p_work "@schema@".work, p_now timestamptz) returns text
language sql immutable parallel safe as $$
    select case
        when p_work.execution_admission_closed_reason is not null then p_work.execution_admission_closed_reason
        when p_work.execution_deadline_reached_at is not null then 'deadline'
        when p_now < "@schema@".work_cutoff(p_work) or p_work.plan_version is null then null
        when p_work.deadline = "@schema@".work_cutoff(p_work) then 'deadline'
        when p_work.accepted_at + p_work.circuit_us * interval '1 microsecond' = "@schema@".work_cutoff(p_work) then 'circuit'
        else 'elapsed'
    end
$$;
