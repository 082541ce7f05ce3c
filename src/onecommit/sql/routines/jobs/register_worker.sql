-- Guarantee: a new incarnation that may claim. Its row outlives its open claims. One that advertises caller_owned_v1
-- enables its queues if no live worker lacks it; one that lacks it is refused by claims of enabled queues. For executor.
-- READ COMMITTED: writer_min is read in a snapshot taken after the lock.
-- Locks: schema (shared), enablement (shared by one without the capability, else exclusive, try).
-- Raises OC004 (also: the package of the worker is older than writer_min), OC006, 22023.
create or replace function "@schema@".register_worker(p_name text, p_info jsonb, p_epoch bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_worker bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'register_worker needs READ COMMITTED' using errcode = 'OC006';
    end if;
    if coalesce(p_name, '') = '' or length(p_name) > 200 or jsonb_typeof(p_info) is distinct from 'object' then
        raise exception 'name: must have 1 to 200 characters; info: must be an object' using errcode = '22023';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    if "@schema@".known_schema_version(p_info) < (select m.writer_min from "@schema@".store_metadata m) then
        perform "@schema@".refuse_package();
    end if;
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
