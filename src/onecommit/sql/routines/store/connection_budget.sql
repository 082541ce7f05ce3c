-- How many connections the login may ever have here (usable), and how many more it gets now (free): what
-- max_connections leaves to ordinary roles, and the limits of the database and of the role. For executor, reader.
-- Read-only. Of other roles' sessions a bounded owner does not see what they are: each counts as a client's.
create or replace function "@schema@".connection_budget() returns table (usable integer, free integer)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    with client as materialized (
        select a.datid, a.usesysid from pg_catalog.pg_stat_activity a
        where a.datid is not null and a.usesysid is not null and coalesce(a.backend_type, 'client backend') = 'client backend'
    )
    select min(l.allowed)::integer, greatest(min(l.allowed - l.used), 0)::integer
    from (
        select current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
                   - coalesce(current_setting('reserved_connections', true)::integer, 0) as allowed,
               (select count(*) from client) as used
        union all
        select d.datconnlimit,
               (select count(*) from client c where c.datid = d.oid)
        from pg_catalog.pg_database d where d.datname = current_database() and d.datconnlimit >= 0
        union all
        select r.rolconnlimit,
               (select count(*) from client c where c.usesysid = r.oid)
        from pg_catalog.pg_roles r where r.rolname = session_user and r.rolconnlimit >= 0
    ) l
$$;
