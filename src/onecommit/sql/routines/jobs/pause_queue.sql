-- Guarantee: claims of the queue that begin after the commit answer 'paused'; what runs goes on; enqueues are accepted.
-- A look that left rows out instead would take them for numbers that never come. For operator.
-- Locks: schema (shared), queue row. Raises OC004, OC009 (no such queue), 22023.
create or replace function "@schema@".pause_queue(p_queue text, p_actor text, p_reason text, p_epoch bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".record_action('pause_queue', p_queue, p_actor, p_reason);
    update "@schema@".queue q set paused = true where q.queue = p_queue;
    if not found then
        raise exception 'there is no such queue' using errcode = 'OC009', hint = 'Names of queues: list_queues().';
    end if;
end $$;
