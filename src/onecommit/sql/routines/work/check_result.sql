-- Raises 22023, naming the field, for a result or a codec out of bounds. Internal.
create or replace function "@schema@".check_result(p_result bytea, p_result_codec text) returns void
language plpgsql immutable as $$
begin
    if octet_length(p_result) > 262144 then
        raise exception 'result: is longer than 262144 bytes' using errcode = '22023';
    end if;
    perform "@schema@".check_identifier('result_codec', p_result_codec);
end $$;
