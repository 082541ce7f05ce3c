-- A number of a fingerprint: tag and eight bytes; null: a tag alone.
create or replace function "@schema@".fingerprint_number(p_value bigint) returns bytea
language sql immutable parallel safe as $$
    select case when p_value is null then e'\\x6e'::bytea else e'\\x69'::bytea || int8send(p_value) end
$$;
