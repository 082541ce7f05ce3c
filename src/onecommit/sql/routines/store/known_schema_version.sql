-- The schema version that the package of a worker knows. One that does not say is of the last that did not. Internal.
create or replace function "@schema@".known_schema_version(p_info jsonb) returns integer
language sql immutable as $$
    select case when jsonb_typeof(p_info -> 'schema_version') = 'number'
                then trunc(least(greatest((p_info ->> 'schema_version')::numeric, 0), 1000000))::integer
                else 5 end
$$;
