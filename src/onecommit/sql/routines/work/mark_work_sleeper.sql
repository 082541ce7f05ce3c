-- Guarantee: for ten seconds after p_sleep = true the acceptance of Work that is due sends the notice `w`; false, by a
-- worker that was woken, ends that. Mark before the last look, so that what is accepted after it is announced.
-- For work_dispatcher.
create or replace function "@schema@".mark_work_sleeper(p_sleep boolean) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
    select setval('"@schema@".work_sleeper',
        case when p_sleep then (extract(epoch from clock_timestamp()) * 1000)::bigint + 10000 else 0 end, true)
$$;
