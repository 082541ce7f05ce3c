-- Whether nothing has closed the attempt yet: its lease stands, or its ready row has no completion. Exact for whoever
-- holds the attempt lock. Internal.
create or replace function "@schema@".attempt_is_open(p_chapter integer, p_lane smallint, p_seq bigint, p_job_id bigint,
    p_run_lease bigint) returns boolean
language sql volatile as $$
    select exists (select from "@schema@".lease l where l.job_id = p_job_id and l.run_lease = p_run_lease)
        or p_chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass)
        and not exists (
            select from "@schema@".completion c
            where c.slot = "@schema@".ring_slot(p_chapter) and c.lane = p_lane and c.seq = p_seq)
$$;
