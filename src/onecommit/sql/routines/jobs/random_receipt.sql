-- An unguessable receipt id of 60 random bits. Internal.
create or replace function "@schema@".random_receipt() returns bigint
language sql volatile as $$
    select ('x' || replace(right(gen_random_uuid()::text, 17), '-', ''))::bit(64)::bigint & 9223372036854775807
$$;
