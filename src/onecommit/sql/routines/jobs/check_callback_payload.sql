-- The payload as JSON. Internal. Raises 22023, and never the payload's text.
create or replace function "@schema@".check_callback_payload(p_payload text) returns json
language plpgsql immutable as $$
begin
    if octet_length(p_payload) <= 1048576 and not (strpos(p_payload, e'\\u') > 0 and "@schema@".has_bad_escape(p_payload)) then
        begin
            return p_payload::json;
        exception when others then
            null;   -- the parser's message quotes the payload, so it is not passed on
        end;
    elsif p_payload is null then
        return 'null';
    end if;
    raise exception 'payload: must be JSON of at most 1048576 bytes without NUL or lone surrogates' using errcode = '22023';
end $$;
