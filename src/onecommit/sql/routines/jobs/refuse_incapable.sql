-- Raises OC003 if the queue accepts caller-owned completion and the worker does not advertise it. Internal.
create or replace function "@schema@".refuse_incapable(p_worker bigint, p_queue text) returns void
language plpgsql stable as $$
begin
    if exists (select from "@schema@".worker w where w.worker = p_worker and not w.caller_owned)
        and exists (select from "@schema@".caller_owned_queue e where e.queue = p_queue and e.enabled_at is not null) then
        raise exception 'the queue accepts caller-owned completion, and this worker does not advertise caller_owned_v1'
            using errcode = 'OC003', hint = 'Upgrade this worker, or let it serve other queues.';
    end if;
end $$;
