-- One scope, and how much unfinished Work it has, or no row. For reader, work_operator. Read-only.
create or replace function "@schema@".get_scope(p_scope_id text)
returns table (scope_id text, generation bigint, state text, created_at timestamptz, disabled_at timestamptz, unfinished bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select s.scope_id::text, s.generation, s.state, s.created_at, s.disabled_at,
               (select count(*) from "@schema@".dispatch d where d.scope_id = s.scope_id and d.state <> 'terminal')
        from "@schema@".scope s where s.scope_id = p_scope_id;
end $$;
