-- Raises OC004 if the attempt was claimed in another epoch, OC005 if the transaction began before the claim or is
-- older than the store allows: held across the handler it pins the MVCC horizon of the database. Internal: complete_job
-- calls it when its own short test does not exclude both.
create or replace function "@schema@".check_finalizer(p_epoch bigint, p_claimed_at timestamptz, p_now timestamptz) returns void
language plpgsql as $$
begin
    if p_epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass) then
        raise exception 'the attempt was claimed in another runtime epoch' using errcode = 'OC004',
            hint = 'Stop this process and start it again with the epoch that the operator announced.';
    end if;
    if transaction_timestamp() < p_claimed_at
        or exists (select from "@schema@".store_metadata m where transaction_timestamp() < p_now - m.finalization_max_age) then
        raise exception 'the transaction began before the claim or is older than the store allows' using errcode = 'OC005',
            hint = 'Open the transaction only for the final writes and complete in it.';
    end if;
end $$;
