-- Guarantee: a new incarnation that may claim. Its row outlives its open claims. Worker. Locks: schema (shared). Raises OC004.
create or replace function "@schema@".register_worker(p_name text, p_info jsonb, p_epoch bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_worker bigint;
begin
    if coalesce(p_name, '') = '' or length(p_name) > 200 or jsonb_typeof(p_info) is distinct from 'object' then
        raise exception 'name: must have 1 to 200 characters; info: must be an object' using errcode = '22023';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    insert into "@schema@".worker (worker, name, info, epoch, started_at, heartbeat_at)
    values (nextval('"@schema@".worker_number'::regclass), p_name, p_info, p_epoch, "@schema@".store_now(), "@schema@".store_now())
    returning worker into v_worker;
    return v_worker;
end $$;
