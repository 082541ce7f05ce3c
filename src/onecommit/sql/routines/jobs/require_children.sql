-- Guarantee: the slot's tables, in the order ready, claim, completion, are those that migration 0002 made, and the ones
-- passed if any are: ordinary logged tables of their parent's owner, attached under the slot's own bound, without a table
-- below them, trigger, rule or row-level security. Internal; true for later only while the tables are locked. Raises OC012.
create or replace function "@schema@".require_children(p_slot smallint, p_expected regclass[] default null) returns regclass[]
language plpgsql as $$
declare
    v_found constant regclass[] := array(
        select (
            select c.oid
            from pg_catalog.pg_class c join pg_catalog.pg_inherits i on i.inhrelid = c.oid and not i.inhdetachpending
            join pg_catalog.pg_class p on p.oid = i.inhparent
            where c.relnamespace = '"@schema@"'::regnamespace and c.relname = f.family || '_' || p_slot
              and p.relnamespace = c.relnamespace and p.relname = f.family and p.relkind = 'p' and p.relowner = c.relowner
              and c.relkind = 'r' and c.relpersistence = 'p' and not c.relrowsecurity and not c.relforcerowsecurity
              and replace(pg_get_expr(c.relpartbound, c.oid), '''', '') = format('FOR VALUES IN (%s)', p_slot)
              and not exists (select from pg_catalog.pg_inherits b where b.inhparent = c.oid)
              and not exists (select from pg_catalog.pg_trigger t where t.tgrelid = c.oid)
              and not exists (select from pg_catalog.pg_rewrite r where r.ev_class = c.oid))
        from unnest(array['ready', 'claim', 'completion']) with ordinality f (family, n) order by f.n);
begin
    if array_position(v_found, null) is not null or v_found <> coalesce(p_expected, v_found) then
        raise exception 'the tables of slot % are not those of the ring, or change just now: nothing was truncated', p_slot
            using errcode = 'OC012', hint = 'onecommit doctor names what differs; put the tables back as migration 0002 made them.';
    end if;
    return v_found;
end $$;
