-- Where each job stands that others wait for: unknown (there is no trace of it), ended with its outcome and code, or
-- neither. own: this transaction wrote it, so that nobody else can have ended it. Internal.
create or replace function "@schema@".find_parents(p_job_ids bigint[])
returns table (job_id bigint, unknown boolean, outcome text, code text, own boolean)
language sql volatile set enable_seqscan = off set jit = off as $$
    select p.job_id, j.job_id is null, j.outcome, j.code,
           exists (select from "@schema@".ready r where r.job_id = p.job_id and r.run_lease = 0 and r.xmin = pg_current_xact_id()::xid)
           or exists (select from "@schema@".dependant d where d.job_id = p.job_id and d.xmin = pg_current_xact_id()::xid)
           or exists (select from "@schema@".scheduled s where s.job_id = p.job_id and s.xmin = pg_current_xact_id()::xid)
    from (select distinct i from unnest(p_job_ids) i) p (job_id)
    left join lateral "@schema@".get_job(p.job_id) j on true
$$;
