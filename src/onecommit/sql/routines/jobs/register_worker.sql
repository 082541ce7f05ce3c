-- Guarantee: a new incarnation that may claim. Its row outlives its open claims. One that advertises caller_owned_v1
-- enables its queues if no live worker lacks it; one that lacks it is refused by claims of enabled queues. For
-- executor. Locks: schema (shared), enablement (shared by one without the capability, else exclusive, try). Raises
-- OC004, 22023.
create or replace function "@schema@".register_worker(p_name text, p_info jsonb, p_epoch bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_worker bigint;
begin
    if coalesce(p_name, '') = '' or length(p_name) > 200 or jsonb_typeof(p_info) is distinct from 'object' then
        raise exception 'name: must have 1 to 200 characters; info: must be an object' using errcode = '22023';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    if not coalesce(p_info -> 'capabilities' ? 'caller_owned_v1', false) then
        -- Whoever enables one of the queues looked before, and its claims will be refused, or sees this worker.
        perform setval('"@schema@".caller_owned_fence', 0, true);
        perform pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".caller_owned_queue'), hashtext(q.queue))
        from "@schema@".queue q where coalesce(p_info -> 'queues' ? q.queue, true) order by hashtext(q.queue);
    end if;
    insert into "@schema@".worker (worker, name, info, epoch, started_at, heartbeat_at)
    values (nextval('"@schema@".worker_number'::regclass), p_name, p_info, p_epoch, "@schema@".store_now(), "@schema@".store_now())
    returning worker into v_worker;
    perform "@schema@".enable_caller_owned();
    return v_worker;
end $$;
