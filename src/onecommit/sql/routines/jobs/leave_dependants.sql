-- Guarantee: the ends of those jobs that still have dependants are on record, and the leader is told at commit. Internal.
create or replace function "@schema@".leave_dependants(p_job_ids bigint[], p_outcomes text[], p_codes text[]) returns void
language plpgsql as $$
begin
    insert into "@schema@".parent_end (job_id, outcome, code)
    select p.job_id, p.outcome, p.code from unnest(p_job_ids, p_outcomes, p_codes) p (job_id, outcome, code)
    where exists (select from "@schema@".dependant d where d.parent_id = p.job_id)
    order by p.job_id
    on conflict do nothing;
    if found then
        perform pg_notify('@schema@', 's');
    end if;
end $$;
