-- An integer option within its bounds, or the default when absent; else 22023 that names the key. Internal.
create or replace function "@schema@".option_integer(
    p_options jsonb, p_key text, p_low bigint, p_high bigint, p_default bigint) returns bigint
language plpgsql immutable as $$
declare
    v_value jsonb := p_options -> p_key;
begin
    if v_value is null or jsonb_typeof(v_value) = 'null' then
        return p_default;
    end if;
    if jsonb_typeof(v_value) <> 'number' or v_value::numeric <> trunc(v_value::numeric)
        or v_value::numeric not between p_low and p_high then
        raise exception '%: must be an integer from % to %', p_key, p_low, p_high using errcode = '22023';
    end if;
    return v_value::numeric::bigint;
end $$;
