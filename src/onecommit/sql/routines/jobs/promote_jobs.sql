-- Guarantee: jobs whose time has come move from scheduled to their lane, each once, soonest first; so do
-- dependants whose parent's end was missed or left for the leader. For maintenance.
-- Locks: schema (shared), scheduled rows (skip locked), (lane, generation) shared. Raises OC004, 40001.
create or replace function "@schema@".promote_jobs(p_limit integer, p_epoch bigint) returns table (promoted integer, next_in_us bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_jobs "@schema@".scheduled[];
    v_place record;
    v_now timestamptz;
    v_resolved record;
begin
    perform "@schema@".enter_runtime(p_epoch);
    v_now := "@schema@".store_now();
    with due as (
        select s.job_id from "@schema@".scheduled s where s.run_at <= v_now order by s.run_at, s.job_id limit p_limit for update skip locked
    ), taken as (
        delete from "@schema@".scheduled s using due where s.job_id = due.job_id returning s as job
    )
    select coalesce(array_agg(t.job order by (t.job).run_at, (t.job).job_id), '{}') into v_jobs from taken t;
    promoted := cardinality(v_jobs);
    for v_place in select distinct j.queue, j.priority from unnest(v_jobs) j order by 1, 2 loop
        perform "@schema@".ready_again(v_place.queue, v_place.priority,
            array(select j from unnest(v_jobs) j where j.queue = v_place.queue and j.priority = v_place.priority order by j.run_at, j.job_id));
    end loop;
    v_resolved := "@schema@".resolve_dependants(p_limit);
    promoted := promoted + v_resolved.o_resolved;
    select (extract(epoch from least(min(s.run_at), v_resolved.o_next) - "@schema@".store_now()) * 1000000)::bigint
    into next_in_us from "@schema@".scheduled s;
    if next_in_us < 0 then      -- greatest() would turn null, nothing is scheduled, into 0
        next_in_us := 0;
    end if;
    return next;
end $$;
