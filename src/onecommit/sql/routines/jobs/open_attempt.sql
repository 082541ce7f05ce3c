-- The job's attempt that waits or runs: its lease, or its ready row without a completion. run_lease is the lease that the
-- attempt has or will get. claimed is exact only if no claim of the lane is in flight. Internal.
create or replace function "@schema@".open_attempt(p_job_id bigint)
returns table (leased boolean, chapter integer, lane smallint, seq bigint, run_lease bigint, claimed boolean)
language sql stable as $$
    select true, null::integer, null::smallint, null::bigint, l.run_lease::bigint, true
    from "@schema@".lease l where l.job_id = p_job_id
    union all
    select false, r.chapter, r.lane, r.seq, r.run_lease + 1::bigint,
           r.seq <= s.frontier and not r.seq <@ (s.old_holes + s.new_holes)
    from "@schema@".ready_rows(p_job_id) r cross join lateral "@schema@".lane_state(r.lane) s
    where r.lane <> 0
      and not exists (select from "@schema@".completion c where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq)
    limit 1
$$;
