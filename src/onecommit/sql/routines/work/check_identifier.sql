-- Raises 22023, naming the field, unless the value is 1 to p_longest of the alphabet of identifiers. Internal.
create or replace function "@schema@".check_identifier(p_field text, p_value text, p_longest integer default 200) returns void
language plpgsql immutable as $$
declare
    v_problem constant text := "@schema@".identifier_problem(p_field, p_value, p_longest);
begin
    if v_problem is not null then
        raise exception '%', v_problem using errcode = '22023';
    end if;
end $$;
