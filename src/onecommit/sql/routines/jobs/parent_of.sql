-- The job that this one waited for, if it did. Internal.
create or replace function "@schema@".parent_of(p_options jsonb) returns bigint
language sql immutable as $$ select (p_options #>> '{parent,job_id}')::bigint $$;
