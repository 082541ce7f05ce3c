-- Guarantee: dead letters named that had a unique key hold it again; returned are those whose key another job has, or
-- another of these with a lower id. Internal, under the locks of these rows. Locks: unique_key rows in key order.
create or replace function "@schema@".retake_unique_keys(p_job_ids bigint[]) returns bigint[]
language plpgsql as $$
declare
    v_keyed record;
    v_refused bigint[];
begin
    select array_agg(d.job_id) as job_ids, array_agg(decode(d.options ->> 'unique', 'hex')) as keys into v_keyed
    from (select * from "@schema@".dead_letter d where d.job_id = any (p_job_ids) and d.options ? 'unique'
          order by d.job_id) d;
    if v_keyed.job_ids is null then
        return '{}';
    end if;
    v_refused := array(
        select v_keyed.job_ids[r.item]
        from "@schema@".reserve_unique_keys(v_keyed.keys, v_keyed.job_ids, array_fill(null::timestamptz, array[cardinality(v_keyed.keys)])) r
        where r.holder <> v_keyed.job_ids[r.item]);
    -- Kept to the end of its window, and by this job: held once more.
    update "@schema@".unique_key u set held = true where u.job_id = any (v_keyed.job_ids) and not u.held;
    return v_refused;
end $$;
