-- Whether p_worker leads maintenance for the next p_ttl_us; a leased row on the database clock, so it works through any
-- pooler. For maintenance. Locks: schema (shared), the leader row. Raises OC004.
create or replace function "@schema@".lead(p_worker bigint, p_ttl_us bigint, p_epoch bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    -- Looked at before it is written: everybody but the leader only reads.
    if exists (select from "@schema@".leader l where l.worker <> p_worker and l.until > "@schema@".store_now()) then
        return false;
    end if;
    update "@schema@".leader l
    set worker = p_worker, until = "@schema@".store_now() + p_ttl_us * interval '1 microsecond'
    where l.worker = p_worker or l.until <= "@schema@".store_now() or l.worker is null;
    return found;
end $$;
