-- Guarantee: the job waits for its parent no longer and its history says cancelled; null when it is no dependant. Internal.
create or replace function "@schema@".cancel_blocked(p_job_id bigint) returns text
language plpgsql as $$
declare
    v_job "@schema@".dependant;
begin
    delete from "@schema@".dependant d where d.job_id = p_job_id returning * into v_job;
    if not found then
        return null;
    end if;
    perform "@schema@".cancel_dependants(array[v_job], null);
    return 'cancelled';
end $$;
