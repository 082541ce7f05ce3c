-- Raises 22023, naming the field, unless the value is from one microsecond to ten years. Internal.
create or replace function "@schema@".check_duration(p_field text, p_value bigint) returns void
language plpgsql immutable as $$
begin
    if (p_value between 1 and 3660 * 86400000000) is not true then
        raise exception '%: must be from 1 microsecond to 3660 days', p_field using errcode = '22023';
    end if;
end $$;
