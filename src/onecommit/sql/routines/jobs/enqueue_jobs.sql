-- Guarantee: the jobs exist if and only if the caller's transaction commits; any transaction, savepoints included.
-- Producer. Locks: schema (shared), unique_key rows in key order, (lane, generation) shared.
-- Raises OC004, OC007, 22023 (names the field, never a value), 40001 (chapter reclaimed: retry).
create or replace function "@schema@".enqueue_jobs(
    p_queue text, p_kinds text[], p_args text[], p_options jsonb, p_epoch bigint)
returns table (job_ids bigint[], created boolean[])
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_count constant integer := cardinality(p_args);
    v_args json[];
    v_option record;
    v_now timestamptz;
    v_lane record;
    v_chapter integer;
begin
    if v_count is null or v_count = 0 or array_ndims(p_args) <> 1 or p_kinds is null
        or cardinality(p_kinds) not in (1, v_count) then
        raise exception 'args: must be a non-empty array; kinds: one for all, or one for each job' using errcode = '22023';
    end if;
    if exists (select from unnest(p_kinds) k where k is null or k = '' or length(k) > 200) then
        raise exception 'kind: the name must have 1 to 200 characters' using errcode = '22023';
    end if;
    v_args := "@schema@".check_payloads(p_args);
    perform "@schema@".enter_runtime(p_epoch);
    v_now := "@schema@".store_now();
    if jsonb_typeof(p_options) = 'array' or p_options ? 'unique' then
        return query select e.* from "@schema@".enqueue_each(p_queue, p_kinds, v_args, p_options, v_now) e;
        return;
    end if;
    select * into v_option from "@schema@".read_options(coalesce(p_options, '{}'), v_now);
    if v_option.o_run_at > v_now then
        with numbered as materialized (
            select nextval('"@schema@".job_number'::regclass) as job_id, a.args, p_kinds[least(a.i, cardinality(p_kinds))] as kind
            from unnest(v_args) with ordinality a (args, i)
        ), written as (
            insert into "@schema@".scheduled (job_id, run_at, queue, priority, created_at, run_lease, attempt, max_attempts, kind, args, options)
            select n.job_id, v_option.o_run_at, p_queue, v_option.o_priority, v_now, 0, 0, v_option.o_max_attempts, n.kind, n.args, v_option.o_stored
            from numbered n
        )
        select array_agg(n.job_id) into job_ids from numbered n;
        perform "@schema@".announce_schedule(p_queue, v_option.o_priority, v_option.o_run_at);
        return next;
        return;
    end if;
    select * into v_lane from "@schema@".enter_lane(p_queue, v_option.o_priority);
    v_chapter := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    with numbered as materialized (
        select nextval('"@schema@".job_number'::regclass) as job_id, a.args, p_kinds[least(a.i, cardinality(p_kinds))] as kind
        from unnest(v_args) with ordinality a (args, i)
    ), written as (
        insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
        select "@schema@".ring_slot(v_chapter), v_lane.o_lane, v_chapter, nextval(v_lane.o_number_seq), n.job_id, v_now,
               0, 0, v_option.o_max_attempts, n.kind, n.args, v_option.o_stored
        from numbered n
    )
    select array_agg(n.job_id) into job_ids from numbered n;
    perform "@schema@".leave_lane(v_lane.o_lane, v_lane.o_sleeper_seq, v_chapter);
    return next;
end $$;
