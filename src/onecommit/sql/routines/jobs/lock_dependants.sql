-- Guarantee: the jobs of p_own that are dependants, and all that the ends of p_job_ids may take with them, level by level,
-- are locked before the first of them is touched: so two that want some of the same never hold what the other waits for.
-- o_locked: those that still stand. o_whole: nothing was left out, neither beyond 5,000 jobs or 100 levels nor, unless
-- p_wait, because somebody else holds it. Internal. Locks: dependant rows in id order (else skip locked).
create or replace function "@schema@".lock_dependants(p_job_ids bigint[], p_outcomes text[], p_own bigint[], p_wait boolean,
    out o_locked bigint[], out o_whole boolean)
language plpgsql as $$
declare
    v_found record;
begin
    -- Breadth first; the limit ends the recursion, and what is taken is always a part of what is locked.
    with recursive reached as (
        (select d.job_id, d.on_parent_failure <> 'enqueue' and p.outcome is distinct from 'completed' as ends, 1 as level
        from unnest(p_job_ids, p_outcomes) p (job_id, outcome)
        join "@schema@".dependant d on d.parent_id = p.job_id and d.job_id <> all (p_own)
        order by d.job_id limit 5000)
        union all
        select d.job_id, d.on_parent_failure <> 'enqueue', r.level + 1
        from reached r join "@schema@".dependant d on d.parent_id = r.job_id and d.job_id <> all (p_own)
        where r.ends and r.level < 100
    )
    select coalesce(array_agg(r.job_id), '{}') as job_ids, max(r.level) as level
    into v_found from (select * from reached limit 5000) r;
    if p_wait then
        o_locked := array(select d.job_id from "@schema@".dependant d where d.job_id = any (v_found.job_ids || p_own)
            order by d.job_id for update);
    else
        o_locked := array(select d.job_id from "@schema@".dependant d where d.job_id = any (v_found.job_ids || p_own)
            order by d.job_id for update skip locked);
    end if;
    o_whole := cardinality(v_found.job_ids) < 5000 and (v_found.level < 100) is not false
        and (p_wait or cardinality(o_locked) >= cardinality(v_found.job_ids));
end $$;
