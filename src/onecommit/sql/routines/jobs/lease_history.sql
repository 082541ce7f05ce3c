-- The completion that ended a materialized attempt, if its chapter still stands. Internal.
create or replace function "@schema@".lease_history(p_job_id bigint, p_run_lease bigint) returns setof "@schema@".completion
language sql stable as $$
    select c.*
    from "@schema@".ready r
    join "@schema@".completion c on c.slot = r.slot and c.lane = r.lane and c.seq = r.seq
    where r.job_id = p_job_id and r.run_lease > 0 and r.run_lease = p_run_lease and r.lane = 0
$$;
