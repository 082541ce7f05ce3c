-- What is wrong with an identifier, naming the field: null if it is 1 to p_longest of the alphabet. Inlined where it is
-- called, and without a count in the expression, which would cost ten times as much to match. Internal.
create or replace function "@schema@".identifier_problem(p_field text, p_value text, p_longest integer default 200) returns text
language sql immutable parallel safe as $$
    -- Negated: a null must not pass.
    select case when (p_value collate "C" ~ '^[A-Za-z0-9._:-]+$' and octet_length(p_value) <= p_longest) is not true then
        p_field || ': must be 1 to ' || p_longest::text || ' of letters, digits and ._:- of ASCII' end
$$;
