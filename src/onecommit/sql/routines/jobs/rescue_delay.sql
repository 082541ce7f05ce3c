-- How long a rescued job waits: the first loss is taken for the worker's fault, repeated ones for the job's. Internal.
create or replace function "@schema@".rescue_delay(p_attempt integer) returns bigint
language sql immutable as $$
    select case when p_attempt = 0 then 0 else least(power(2, least(p_attempt, 20)), 3600)::bigint * 1000000 end
$$;
