-- One step of ring maintenance: rotate, reclaim, evacuate, or none; 'blocked' when another transaction stood in the way
-- for longer than the lock timeout (try again later). For maintenance. READ COMMITTED.
-- Locks: schema (shared), then those of the step. Raises OC004, OC006.
create or replace function "@schema@".tend_ring(p_epoch bigint) returns table (action text, chapter integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
#variable_conflict use_column
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'tend_ring needs READ COMMITTED' using errcode = 'OC006';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    -- One tender at a time: the steps below assume that nobody else moves the fences.
    if not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".ring'), 0) then
        return query select 'blocked', null::integer;
        return;
    end if;
    begin
        -- Rotation first: a long reader can block a reclaim for hours, and the head must not grow meanwhile.
        return query select r.* from "@schema@".rotate_chapter() r;
        if not found then
            return query select r.* from "@schema@".reclaim_chapter() r;
        end if;
        if not found then
            return query select e.* from "@schema@".evacuate_chapter() e;
        end if;
        if not found then
            return query select 'none', null::integer;
        end if;
    exception when lock_not_available or deadlock_detected then
        return query select 'blocked', null::integer;
    end;
end $$;
