-- exponential-v1: microseconds to wait after failed attempt p_attempt >= 1; capped first, so that nothing overflows.
create or replace function "@schema@".retry_delay_us(p_attempt integer, p_initial_us bigint, p_max_us bigint) returns bigint
language sql immutable parallel safe as $$
    select case
        when p_attempt - 1 > 62 or p_initial_us > (p_max_us >> (p_attempt - 1)) then p_max_us
        else p_initial_us << (p_attempt - 1)
    end
$$;
