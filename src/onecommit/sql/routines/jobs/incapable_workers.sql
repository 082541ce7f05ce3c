-- The live workers that may claim from the queue and do not advertise caller_owned_v1. Internal.
create or replace function "@schema@".incapable_workers(p_queue text) returns setof "@schema@".worker
language sql stable as $$
    select w.* from "@schema@".worker w
    where not w.caller_owned and w.ended_at is null and coalesce(w.info -> 'queues' ? p_queue, true)
      and w.epoch = pg_sequence_last_value('"@schema@".epoch_fence'::regclass)
    order by w.worker
$$;
