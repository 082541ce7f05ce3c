-- At most p_limit due items of Work of these contracts (names[i], versions[i]; contract is that i), the longest due
-- first; also leases that have ended. A look, not a claim: nothing is locked, and what it shows may be gone.
-- Payload-free. For work_dispatcher. Each contract is looked up apart in ix_work_contract_dispatch_lookup; one scan for
-- all would read every due row. Raises 22023.
create or replace function "@schema@".discover_work_dispatch(p_names text[], p_versions text[], p_limit integer)
returns table (scope_id text, work_id bigint, revision bigint, priority smallint, contract integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now constant timestamptz := "@schema@".store_now();
begin
    if cardinality(p_names) is distinct from cardinality(p_versions) or cardinality(p_names) not between 1 and 10000
        or p_names is null or array_position(p_names, null) is not null or array_position(p_versions, null) is not null
        or (select count(distinct (c.name, c.version)) from unnest(p_names, p_versions) c (name, version)) <> cardinality(p_names) then
        raise exception 'names, versions: must be 1 to 10000 distinct pairs without nulls' using errcode = '22023';
    end if;
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception 'limit: must be between 1 and 1000' using errcode = '22023';
    end if;
    return query
        select d.scope_id::text, d.work_id, d.expected_revision, d.priority, c.n::integer
        from unnest(p_names, p_versions) with ordinality c (name, version, n)
        cross join lateral (
            select l.*
            from "@schema@".dispatch l
            where l.contract_name = c.name and l.contract_version = c.version and l.state in ('available', 'leased')
              and l.discover_at <= v_now
            order by l.discover_at, l.priority desc, l.dispatch_id
            limit p_limit
        ) d
        order by d.discover_at, d.priority desc, d.dispatch_id
        limit p_limit;
end $$;
