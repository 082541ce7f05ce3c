-- Whether the job waits or runs: it will have, or has, an attempt. Internal.
create or replace function "@schema@".is_unfinished(p_job_id bigint) returns boolean
language sql volatile as $$
    select exists (select from "@schema@".scheduled s where s.job_id = p_job_id) or exists (select from "@schema@".open_attempt(p_job_id))
$$;
