-- Guarantee: a queue that live workers with the capability serve is enabled for caller-owned completion, for good, unless
-- a live worker without it serves the queue too or an operator has disabled it. A worker that does not say what it
-- serves may serve any. Internal.
-- Locks: enablement (exclusive, try: an enabler at work does the same, and a worker being registered prevents it).
create or replace function "@schema@".enable_caller_owned() returns void
language plpgsql as $$
declare
    v_queue text;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        return;     -- the workers must be looked up in a snapshot taken after the lock
    end if;
    for v_queue in
        select distinct q.queue
        from "@schema@".worker w
        cross join lateral jsonb_array_elements_text(
            case when jsonb_typeof(w.info -> 'queues') = 'array' then w.info -> 'queues' else '[]' end) q (queue)
        where w.caller_owned and w.ended_at is null
          and not exists (select from "@schema@".caller_owned_queue e where e.queue = q.queue)
        order by q.queue
    loop
        if pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".caller_owned_queue'), hashtext(v_queue)) then
            insert into "@schema@".caller_owned_queue (queue, enabled_at)
            select v_queue, "@schema@".store_now()
            where not exists (select from "@schema@".incapable_workers(v_queue))
            on conflict do nothing;
        end if;
    end loop;
end $$;
