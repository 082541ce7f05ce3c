-- Raises OC003. Internal.
create or replace function "@schema@".refuse_incapable() returns void
language plpgsql as $$
begin
    raise exception 'the queue accepts caller-owned completion, and this worker does not advertise caller_owned_v1'
        using errcode = 'OC003', hint = 'Upgrade this worker, or let it serve other queues.';
end $$;
