-- Guarantee: at most p_limit items of Work that ended before p_before lose payload, result and observed bytes; what
-- remains answers a late duplicate. Never Work with a permit that may have had an effect: such Work only leaves the list
-- of what a purge looks at, since nothing clears it once it has ended. The answer is how many lost them. For
-- work_retention. Locks: schema, scope (shared), Work (skipping locked ones), dispatch. Raises OC004, 22023.
create or replace function "@schema@".purge_work(
    p_before timestamptz, p_limit integer, p_actor text, p_reason text, p_epoch bigint) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_item record;
    v_scopes text[] := '{}';
    v_ids bigint[] := '{}';
    v_kept boolean[] := '{}';
    v_found integer := 0;
    v_scope text;
    v_purged integer := 0;
begin
    if p_before is null or p_limit is null or p_limit not between 1 and 10000 then
        raise exception 'before, limit: a time, and 1 to 10000' using errcode = '22023';
    end if;
    perform "@schema@".check_command('purge_work', p_actor, p_reason);  -- it has no id of its own
    perform "@schema@".enter_runtime(p_epoch);
    for v_item in
        select d.scope_id::text as scope_id, d.work_id, "@schema@".has_unresolved(d.work_id, p_epoch) as is_kept
        from "@schema@".dispatch d
        where d.state = 'terminal' and d.discover_at < p_before
        order by d.discover_at
    loop
        -- At most as many leave the list; of more than these a later purge takes care.
        continue when v_item.is_kept and cardinality(v_ids) - v_found >= p_limit;
        v_scopes := array_append(v_scopes, v_item.scope_id);
        v_ids := array_append(v_ids, v_item.work_id);
        v_kept := array_append(v_kept, v_item.is_kept);
        v_found := v_found + (not v_item.is_kept)::integer;
        exit when v_found = p_limit;
    end loop;
    -- Every scope before the first row, in one order: a purge that waits for a scope holds nobody up in another one.
    for v_scope in select distinct o.scope_id from unnest(v_scopes) o (scope_id) order by 1 loop
        perform "@schema@".lock_scope(v_scope, p_epoch, false);
    end loop;
    for v_scope in select distinct o.scope_id from unnest(v_scopes) o (scope_id) order by 1 loop
        perform "@schema@".lock_scope(v_scope, p_epoch, false);  -- held already: this sets the context
        v_purged := v_purged + "@schema@".purge_items(array(
            select o.work_id from unnest(v_scopes, v_ids, v_kept) o (scope_id, work_id, is_kept)
            where o.scope_id = v_scope and not o.is_kept));
        delete from "@schema@".dispatch d
        where d.work_id = any (array(
            select k.work_id
            from unnest(v_scopes, v_ids, v_kept) o (scope_id, work_id, is_kept)
            join "@schema@".dispatch k on k.work_id = o.work_id
            where o.scope_id = v_scope and o.is_kept
            for update of k skip locked));
    end loop;
    perform "@schema@".leave_scope();
    if v_purged > 0 then
        perform "@schema@".record_action('purge_work', v_purged::text, p_actor, p_reason);
    end if;
    return v_purged;
end $$;
