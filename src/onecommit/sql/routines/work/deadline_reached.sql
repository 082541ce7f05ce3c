-- Whether nothing of this Work may be claimed, admitted, released or ordinarily succeed at p_now.
create or replace function "@schema@".deadline_reached(p_work "@schema@".work, p_now timestamptz) returns boolean
language sql immutable parallel safe as $$
    select p_work.execution_deadline_reached_at is not null or coalesce(p_now >= p_work.deadline, false)
$$;
