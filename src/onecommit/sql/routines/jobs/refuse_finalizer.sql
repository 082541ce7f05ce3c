-- Raises OC004 if the attempt was claimed in another epoch, OC003 if the queue is not enabled, else OC005: the
-- transaction began before the claim, or is older than the store allows. One that is held across the handler pins the
-- MVCC horizon of the database. Internal.
create or replace function "@schema@".refuse_finalizer(p_epoch bigint, p_enabled boolean) returns void
language plpgsql as $$
begin
    if p_epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass) then
        raise exception 'the attempt was claimed in another runtime epoch' using errcode = 'OC004',
            hint = 'Stop this process and start it again with the epoch that the operator announced.';
    end if;
    if not p_enabled then
        raise exception 'caller-owned completion is not enabled for the queue' using errcode = 'OC003',
            hint = 'Every live worker of the queue must advertise caller_owned_v1; finalization_status() names those that do not.';
    end if;
    raise exception 'the transaction began before the claim or is older than the store allows' using errcode = 'OC005',
        hint = 'Open the transaction only for the final writes and complete in it.';
end $$;
