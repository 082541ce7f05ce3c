-- One item of Work without its payload, or no row. For reader, work_operator. Read-only.
create or replace function "@schema@".get_work(p_work_id bigint) returns setof "@schema@".work_view
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query select v.* from "@schema@".work_views(array[p_work_id]) v;
end $$;
