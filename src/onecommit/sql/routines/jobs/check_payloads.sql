-- Guarantee: one kind for all jobs or one for each, of 1 to 200 characters; every payload is JSON without NUL or lone
-- surrogates and at most 1 MiB. Else 22023 that names the field and position, never the value. Internal.
-- One payload, the most frequent case, is looked at without starting an executor.
create or replace function "@schema@".check_payloads(p_kinds text[], p_args text[]) returns json[]
language plpgsql immutable as $$
begin
    if not coalesce(cardinality(p_args) = 1 and cardinality(p_kinds) = 1 and length(p_kinds[1]) between 1 and 200
        and octet_length(p_args[1]) <= 1048576 and strpos(p_args[1], '\u') = 0, false) then
        perform "@schema@".check_payloads_each(p_kinds, p_args);
    end if;
    begin
        return p_args::json[];
    exception when others then
        null;   -- the parser's message quotes the payload, so it is not passed on
    end;
    raise exception 'args: an element is not valid JSON' using errcode = '22023';
end $$;
