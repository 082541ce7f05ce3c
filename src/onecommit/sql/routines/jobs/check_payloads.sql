-- Guarantee: one kind for all jobs or one for each, of 1 to 200 characters; every payload is JSON without NUL or lone
-- surrogates and at most 1 MiB. Else 22023 that names the field and position, never the value. Internal.
create or replace function "@schema@".check_payloads(p_kinds text[], p_args text[]) returns json[]
language plpgsql immutable as $$
begin
    perform "@schema@".check_payloads_each(p_kinds, p_args);
    begin
        return p_args::json[];
    exception when others then
        null;   -- the parser's message quotes the payload, so it is not passed on
    end;
    raise exception 'args: an element is not valid JSON' using errcode = '22023';
end $$;
