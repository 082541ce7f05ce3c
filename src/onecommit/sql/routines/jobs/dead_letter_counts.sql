-- The dead letters of each queue: how many, and since when the first and the last of them. For reader. Read-only.
create or replace function "@schema@".dead_letter_counts()
returns table (queue text, dead bigint, first_at timestamptz, last_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select d.queue, count(*), min(d.died_at), max(d.died_at) from "@schema@".dead_letter d group by d.queue order by d.queue
$$;
