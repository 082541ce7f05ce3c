-- Guarantee: complete_job is refused in the queue to transactions that begin after the commit, workers without
-- caller_owned_v1 may claim from it, and no worker enables it again before allow_caller_owned. What runs goes on, and
-- all other outcomes are recorded; a transaction that completed an attempt before may still commit. For operator.
-- Locks: schema (shared), enablement (exclusive). Raises OC004, OC009 (no such queue), 22023.
create or replace function "@schema@".disable_caller_owned(p_queue text, p_actor text, p_reason text, p_epoch bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".record_action('disable_caller_owned', p_queue, p_actor, p_reason);
    if not exists (select from "@schema@".queue q where q.queue = p_queue)
        and not exists (select from "@schema@".caller_owned_queue e where e.queue = p_queue) then
        raise exception 'there is no such queue' using errcode = 'OC009',
            hint = 'Names of queues: list_queues() and finalization_status().';
    end if;
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".caller_owned_queue'), hashtext(p_queue));
    perform setval('"@schema@".caller_owned_fence', 0, true);
    insert into "@schema@".caller_owned_queue (queue, disabled_at) values (p_queue, "@schema@".store_now())
    on conflict (queue) do update set enabled_at = null, disabled_at = excluded.disabled_at
    where caller_owned_queue.disabled_at is null;
end $$;
