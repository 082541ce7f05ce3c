-- A text of a fingerprint: tag, length in four bytes, bytes. Of names only, whose alphabet is within ASCII and holds no
-- backslash, so that the cast is their bytes; convert_to would not be immutable.
create or replace function "@schema@".fingerprint_text(p_value text) returns bytea
language sql immutable strict parallel safe as $$
    select e'\\x73'::bytea || int4send(length(p_value)) || p_value::bytea
$$;
