-- Guarantee: the jobs wait in their lanes, or in the schedule if their time has not come. Internal.
-- Locks: (lane, generation) shared. Raises 40001.
-- Their first lease is the second number: rows out of id order are found by the index of later attempts, not by BRIN.
create or replace function "@schema@".place_dependants(p_dependants "@schema@".dependant[]) returns void
language plpgsql as $$
declare
    v_now constant timestamptz := "@schema@".store_now();
    v_place record;
begin
    if cardinality(p_dependants) = 0 then
        return;
    end if;
    insert into "@schema@".scheduled (job_id, run_at, queue, priority, created_at, run_lease, attempt, max_attempts, kind, args, options)
    select d.job_id, d.run_at, d.queue, d.priority, d.created_at, 1, 0, d.max_attempts, d.kind, d.args, d.options
    from unnest(p_dependants) d where d.run_at > v_now;
    for v_place in
        select d.queue, d.priority, min(d.run_at) filter (where d.run_at > v_now) as run_at,
               array_agg(row(d.job_id, null, d.queue, d.priority, d.created_at, 1, 0, d.max_attempts, d.kind, d.args, d.options)::"@schema@".scheduled
                         order by d.job_id) filter (where (d.run_at > v_now) is not true) as due
        from unnest(p_dependants) d group by d.queue, d.priority order by 1, 2
    loop
        if v_place.run_at is not null then
            perform "@schema@".announce_schedule(v_place.queue, v_place.priority, v_place.run_at);
        end if;
        if v_place.due is not null then
            perform "@schema@".ready_again(v_place.queue, v_place.priority, v_place.due);
        end if;
    end loop;
end $$;
