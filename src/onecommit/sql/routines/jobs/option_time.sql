-- A timestamp option with its offset, or null when absent; else 22023 that names the key. Bounded by what every client can
-- read back in every time zone. Internal.
create or replace function "@schema@".option_time(p_options jsonb, p_key text) returns timestamptz
language plpgsql stable as $$
declare
    v_value text := p_options ->> p_key;
    v_time timestamptz;
begin
    if v_value is null then
        return null;
    end if;
    -- The parser's messages quote the value, so they are not passed on.
    begin
        if v_value ~ '^[0-9]{4,6}(-[0-9]{2}){2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$' then
            v_time := v_value::timestamptz;
        end if;
    exception when data_exception then
        null;
    end;
    if v_time between to_timestamp(0) and to_timestamp(253370764800) then
        return v_time;
    end if;
    raise exception '%: must be an ISO 8601 timestamp with an offset, in the years 1970 to 9998', p_key using errcode = '22023';
end $$;
