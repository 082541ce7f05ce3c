-- Guarantee: every element is JSON without NUL or lone surrogates and at most 1 MiB; else 22023 that names the
-- position, never the value. Internal. The exception block keeps the parser's message, which quotes the payload, in.
create or replace function "@schema@".check_payloads(p_args text[]) returns json[]
language plpgsql immutable as $$
declare
    v_bad integer;
    v_json json[];
begin
    select a.i into v_bad from unnest(p_args) with ordinality a (v, i)
    where a.v is null or octet_length(a.v) > 1048576
        or strpos(a.v, '\u') > 0 and "@schema@".has_bad_escape(a.v)
    order by a.i limit 1;
    if v_bad is not null then
        raise exception 'args[%]: must be JSON of at most 1048576 bytes without NUL or lone surrogates', v_bad
            using errcode = '22023';
    end if;
    begin
        v_json := p_args::json[];
    exception when others then
        v_json := null;
    end;
    if v_json is null then
        raise exception 'args: an element is not valid JSON' using errcode = '22023';
    end if;
    return v_json;
end $$;
