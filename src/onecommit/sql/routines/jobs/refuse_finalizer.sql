-- Raises OC004 if the attempt was claimed in another epoch, else OC005: the transaction began before the claim, or is
-- older than the store allows. One that is held across the handler pins the MVCC horizon of the database. Internal.
create or replace function "@schema@".refuse_finalizer(p_epoch bigint) returns void
language plpgsql as $$
begin
    if p_epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass) then
        raise exception 'the attempt was claimed in another runtime epoch' using errcode = 'OC004',
            hint = 'Stop this process and start it again with the epoch that the operator announced.';
    end if;
    raise exception 'the transaction began before the claim or is older than the store allows' using errcode = 'OC005',
        hint = 'Open the transaction only for the final writes and complete in it.';
end $$;
