-- Guarantee: what disable_caller_owned forbade is forgotten. The queue is enabled at once if a live worker with
-- caller_owned_v1 serves it and none without, and else by the workers as soon as that is so. For operator.
-- Locks: schema (shared), enablement (exclusive; other queues': try). Raises OC004, OC009 (no such queue), 22023.
create or replace function "@schema@".allow_caller_owned(p_queue text, p_actor text, p_reason text, p_epoch bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".record_action('allow_caller_owned', p_queue, p_actor, p_reason);
    if not exists (select from "@schema@".queue q where q.queue = p_queue)
        and not exists (select from "@schema@".caller_owned_queue e where e.queue = p_queue) then
        raise exception 'there is no such queue' using errcode = 'OC009',
            hint = 'Names of queues: list_queues() and finalization_status().';
    end if;
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".caller_owned_queue'), hashtext(p_queue));
    delete from "@schema@".caller_owned_queue e where e.queue = p_queue and e.disabled_at is not null;
    perform "@schema@".enable_caller_owned();
end $$;
