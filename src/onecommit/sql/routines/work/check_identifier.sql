-- Raises 22023, naming the field, unless the value is 1 to p_longest of the alphabet of identifiers. Internal.
create or replace function "@schema@".check_identifier(p_field text, p_value text, p_longest integer default 200) returns void
language plpgsql immutable as $$
begin
    -- Negated: a null must not pass.
    if (p_value collate "C" ~ '^[A-Za-z0-9._:-]+$' and length(p_value) <= p_longest) is not true then
        raise exception '%: must be 1 to % of letters, digits and ._:- of ASCII', p_field, p_longest using errcode = '22023';
    end if;
end $$;
