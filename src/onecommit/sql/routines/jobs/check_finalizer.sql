-- Guarantee: the attempt was claimed in the active epoch and the transaction is a short one begun after the claim.
-- Internal. Raises OC004, OC005. A transaction held across the handler pins the MVCC horizon of the whole database.
create or replace function "@schema@".check_finalizer(p_epoch bigint, p_claimed_at timestamptz) returns void
language plpgsql as $$
begin
    if p_epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass) then
        raise exception 'the attempt was claimed in another runtime epoch' using errcode = 'OC004',
            hint = 'Stop this process and start it again with the epoch that the operator announced.';
    end if;
    if transaction_timestamp() < p_claimed_at or transaction_timestamp() <
        "@schema@".store_now() - (select m.finalization_max_age from "@schema@".store_metadata m) then
        raise exception 'the transaction began before the claim or is older than the store allows' using errcode = 'OC005',
            hint = 'Open the transaction only for the final writes and complete in it.';
    end if;
end $$;
