-- Guarantee: the transaction holds the shared schema lock and p_epoch is the active epoch, so a migration or an epoch
-- change waits for this transaction, and a process of an older epoch writes nothing. Always true, so that hot paths
-- can assign it: an assignment is a simple expression, PERFORM starts an executor.
-- Internal. Locks: schema (shared). Raises OC004.
create or replace function "@schema@".enter_runtime(p_epoch bigint) returns boolean
language plpgsql as $$
declare
    v_locked constant boolean := pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".store_metadata'), 0) is not null;
begin
    -- Read after the lock, outside MVCC: a REPEATABLE READ caller must not see an old epoch.
    if p_epoch is null or p_epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass) or p_epoch = 0 then
        raise exception 'the runtime epoch passed is not the active one' using errcode = 'OC004',
            hint = 'Stop this process and start it again with the epoch that the operator announced.';
    end if;
    return true;
end $$;
