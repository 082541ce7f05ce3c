-- All ready rows of a job, newest last. Internal. Two looks, because first attempts are found by BRIN and the others by
-- the partial index; one look without the second condition would read the whole table. So would the first in a chapter
-- that was never analyzed, unless the caller has set enable_seqscan = off: BRIN seems to be of no use there.
create or replace function "@schema@".ready_rows(p_job_id bigint) returns setof "@schema@".ready
language sql stable as $$
    select r.* from (
        select a.* from "@schema@".ready a where a.job_id = p_job_id and a.run_lease = 0
        union all
        select b.* from "@schema@".ready b where b.job_id = p_job_id and b.run_lease > 0
    ) r order by r.chapter, r.run_lease
$$;
