-- Guarantee: at most p_limit items of Work that ended before p_before lose payload, result and observed bytes; what
-- remains answers a late duplicate. Never Work with a permit that may have had an effect. The answer is how many.
-- For work_retention. Locks: schema, scope (shared), Work (skipping locked ones), dispatch. Raises OC004, 22023.
create or replace function "@schema@".purge_work(
    p_before timestamptz, p_limit integer, p_actor text, p_reason text, p_epoch bigint) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_scopes text[];
    v_ids bigint[];
    v_scope text;
    v_purged integer := 0;
begin
    if p_before is null or p_limit is null or p_limit not between 1 and 10000 then
        raise exception 'before, limit: a time, and 1 to 10000' using errcode = '22023';
    end if;
    perform "@schema@".check_command('purge_work', p_actor, p_reason);  -- it has no id of its own
    perform "@schema@".enter_runtime(p_epoch);
    select array_agg(o.scope_id::text), array_agg(o.work_id) into v_scopes, v_ids
    from (
        select d.scope_id, d.work_id from "@schema@".dispatch d
        where d.state = 'terminal' and d.discover_at < p_before and not "@schema@".has_unresolved(d.work_id, p_epoch)
        order by d.discover_at limit p_limit
    ) o;
    -- Every scope before the first row, in one order: a purge that waits for a scope holds nobody up in another one.
    for v_scope in select distinct o.scope_id from unnest(v_scopes) o (scope_id) order by 1 loop
        perform "@schema@".lock_scope(v_scope, p_epoch, false);
    end loop;
    for v_scope in select distinct o.scope_id from unnest(v_scopes) o (scope_id) order by 1 loop
        perform "@schema@".lock_scope(v_scope, p_epoch, false);  -- held already: this sets the context
        v_purged := v_purged + "@schema@".purge_items(array(
            select o.work_id from unnest(v_scopes, v_ids) o (scope_id, work_id) where o.scope_id = v_scope));
    end loop;
    perform "@schema@".leave_scope();
    if v_purged > 0 then
        perform "@schema@".record_action('purge_work', v_purged::text, p_actor, p_reason);
    end if;
    return v_purged;
end $$;
