-- The queues that accept caller-owned completion (enabled_at), those that an operator has disabled (disabled_at), and
-- those that live workers would serve so but for others that do not advertise caller_owned_v1: their names, which are
-- also those for whom a disabled queue would have to wait if it were allowed again. For executor, reader. Read-only.
create or replace function "@schema@".finalization_status()
returns table (queue text, enabled_at timestamptz, waiting_for text[], disabled_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select q.queue, e.enabled_at,
           array(select w.name from "@schema@".incapable_workers(q.queue) w where e.enabled_at is null) as waiting_for,
           e.disabled_at
    from (
        select e.queue from "@schema@".caller_owned_queue e
        union
        select s.queue
        from "@schema@".worker w
        cross join lateral jsonb_array_elements_text(
            case when jsonb_typeof(w.info -> 'queues') = 'array' then w.info -> 'queues' else '[]' end) s (queue)
        where w.caller_owned and w.ended_at is null
    ) q
    left join "@schema@".caller_owned_queue e on e.queue = q.queue
    order by q.queue
$$;
