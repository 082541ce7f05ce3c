-- Guarantee: compare-and-set from p_expected to p_candidate with an audit row; every process of the old epoch is
-- fenced. A stale expectation changes nothing.
-- For operator. Locks: schema (exclusive, this transaction). Raises OC004, OC009 (another store), 22023.
create or replace function "@schema@".rotate_epoch(
    p_store_id uuid, p_expected bigint, p_candidate bigint, p_actor text, p_reason text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock("@schema@".schema_lock_class(), 0);
    if p_expected is null or p_expected = 0
        or p_expected <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass) then
        raise exception 'the active epoch is not the expected one' using errcode = 'OC004',
            hint = 'Read the active epoch with store_status and decide again.';
    end if;
    return "@schema@".activate_epoch(p_store_id, p_expected, p_candidate, p_actor, p_reason);
end $$;
