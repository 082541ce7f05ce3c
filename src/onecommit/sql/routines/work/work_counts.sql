-- How many unfinished items of Work stand in each state; ended ones are not counted, which would read them all.
-- For reader, work_operator. Read-only.
create or replace function "@schema@".work_counts() returns table (state text, items bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select w.state::text, count(*) from "@schema@".dispatch d join "@schema@".work w on w.work_id = d.work_id
        where d.state <> 'terminal' group by w.state order by w.state;
end $$;
