-- The part of check_payloads that looks at kinds, sizes and escapes. Internal. Raises 22023.
create or replace function "@schema@".check_payloads_each(p_kinds text[], p_args text[]) returns void
language plpgsql immutable as $$
declare
    v_bad integer;
begin
    if coalesce(cardinality(p_args), 0) = 0 or coalesce(cardinality(p_kinds), 0) not in (1, cardinality(p_args)) then
        raise exception 'args: must be a non-empty array; kinds: one for all, or one for each job' using errcode = '22023';
    end if;
    if exists (select from unnest(p_kinds) k where k is null or length(k) not between 1 and 200) then
        raise exception 'kind: the name must have 1 to 200 characters' using errcode = '22023';
    end if;
    select a.i into v_bad from unnest(p_args) with ordinality a (v, i)
    where a.v is null or octet_length(a.v) > 1048576 or strpos(a.v, e'\\u') > 0 and "@schema@".has_bad_escape(a.v)
    order by a.i limit 1;
    if found then
        raise exception 'args[%]: must be JSON of at most 1048576 bytes without NUL or lone surrogates', v_bad
            using errcode = '22023';
    end if;
end $$;
