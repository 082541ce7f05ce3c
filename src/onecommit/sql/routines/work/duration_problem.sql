-- What is wrong with a duration, naming the field: null if it is from one microsecond to ten years. Internal.
create or replace function "@schema@".duration_problem(p_field text, p_value bigint) returns text
language sql immutable parallel safe as $$
    select case when (p_value between 1 and 3660 * 86400000000) is not true then
        p_field || ': must be from 1 microsecond to 3660 days' end
$$;
