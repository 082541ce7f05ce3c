-- Guarantee: the incarnation claims no more; what it left open is rescued at the next rescue. For executor.
-- Locks: schema (shared), worker (exclusive), enablement (try). Raises OC004.
create or replace function "@schema@".retire_worker(p_worker bigint, p_epoch bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".worker'), hashint8(p_worker));
    update "@schema@".worker w set ended_at = "@schema@".store_now() where w.worker = p_worker and w.ended_at is null;
    perform "@schema@".enable_caller_owned();
    update "@schema@".leader l set until = '-infinity' where l.worker = p_worker;
end $$;
