-- A moment of a fingerprint: tag and microseconds since 2000-01-01 UTC in eight bytes; null: a tag alone.
create or replace function "@schema@".fingerprint_time(p_value timestamptz) returns bytea
language sql immutable parallel safe as $$
    select case when p_value is null then e'\\x6e'::bytea else e'\\x74'::bytea || timestamptz_send(p_value) end
$$;
