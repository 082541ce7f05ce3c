-- What to say of a job that neither waits nor runs. Internal.
create or replace function "@schema@".finished_or_unknown(p_job_id bigint) returns text
language sql stable as $$
    select case when exists (select from "@schema@".dead_letter d where d.job_id = p_job_id)
        or exists (select from "@schema@".ready_rows(p_job_id)) then 'already_finished' else 'not_found' end
$$;
