-- Guarantee: a store without an epoch gets its first one, once, with its audit row; else OC004 and nothing changes.
-- For operator. Locks: schema (exclusive, this transaction). Raises OC004, OC009 (another store), 22023.
create or replace function "@schema@".initialize_epoch(
    p_store_id uuid, p_candidate bigint, p_actor text, p_reason text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock("@schema@".schema_lock_class(), 0);
    if pg_sequence_last_value('"@schema@".epoch_fence'::regclass) <> 0 then
        raise exception 'the store already has a runtime epoch' using errcode = 'OC004',
            hint = 'Use rotate_epoch with the epoch that you expect to be active.';
    end if;
    return "@schema@".activate_epoch(p_store_id, null, p_candidate, p_actor, p_reason);
end $$;
