-- The lanes of a queue, for matching wake-up notices. For executor. Read-only.
create or replace function "@schema@".queue_lanes(p_queue text) returns smallint[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select array(select l.lane from "@schema@".lane l where l.queue = p_queue order by l.lane)
$$;
