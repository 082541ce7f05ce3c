-- The part of enqueue_jobs for options that differ from job to job, for unique keys and for dependants. Internal.
-- created[i] is false where a unique key is held by an existing job, whose id is then job_ids[i].
create or replace function "@schema@".enqueue_each(
    p_queue text, p_kinds text[], p_args json[], p_options jsonb, p_now timestamptz)
returns table (job_ids bigint[], created boolean[])
language plpgsql as $$
declare
    v_count constant integer := cardinality(p_args);
    v_kinds constant text[] := case cardinality(p_kinds) when 1 then array_fill(p_kinds[1], array[v_count]) else p_kinds end;
    v_option record;
    v_priorities integer[];
    v_max_attempts integer[];
    v_run_at timestamptz[];
    v_keys bytea[];
    v_keep_until timestamptz[];
    v_stored jsonb[];
    v_parents bigint[];
    v_rules text[];
    v_placed boolean[];
    v_conflict record;
    v_priority integer;
    v_lane record;
    v_chapter integer;
begin
    if jsonb_typeof(p_options) = 'array' and jsonb_array_length(p_options) <> v_count then
        raise exception 'options: an array must have one object for each job' using errcode = '22023';
    end if;
    for i in 1..v_count loop
        select * into v_option from "@schema@".read_options(
            case jsonb_typeof(p_options) when 'array' then p_options -> (i - 1) else p_options end, p_now);
        v_priorities[i] := v_option.o_priority;
        v_max_attempts[i] := v_option.o_max_attempts;
        v_run_at[i] := case when v_option.o_run_at > p_now then v_option.o_run_at end;
        v_keys[i] := v_option.o_unique_key;
        v_keep_until[i] := v_option.o_keep_until;
        v_stored[i] := v_option.o_stored;
        v_parents[i] := v_option.o_after;
        v_rules[i] := v_option.o_on_parent_failure;
    end loop;
    job_ids := array(select nextval('"@schema@".job_number'::regclass) from generate_series(1, v_count));
    created := array_fill(true, array[v_count]);
    for v_conflict in
        select r.item, r.holder from "@schema@".reserve_unique_keys(v_keys, job_ids, v_keep_until) r
        where r.holder <> job_ids[r.item]
    loop
        job_ids[v_conflict.item] := v_conflict.holder;
        created[v_conflict.item] := false;
    end loop;
    v_placed := created;
    if exists (select from unnest(v_parents) p where p is not null) then
        perform "@schema@".enqueue_dependants(array(
            select row(n.job_id, n.parent, n.rule, n.run_at, p_queue, n.priority, p_now, n.max_attempts, n.kind, n.args, n.stored, null, null)::"@schema@".dependant
            from unnest(job_ids, created, v_parents, v_rules, v_run_at, v_priorities, v_max_attempts, v_kinds, p_args, v_stored)
                n (job_id, created, parent, rule, run_at, priority, max_attempts, kind, args, stored)
            where n.created and n.parent is not null));
        v_placed := array(select n.created and n.parent is null from unnest(created, v_parents) n (created, parent));
    end if;
    insert into "@schema@".scheduled (job_id, run_at, queue, priority, created_at, run_lease, attempt, max_attempts, kind, args, options)
    select n.job_id, n.run_at, p_queue, n.priority, p_now, 0, 0, n.max_attempts, n.kind, n.args, n.stored
    from unnest(job_ids, v_placed, v_run_at, v_priorities, v_max_attempts, v_kinds, p_args, v_stored)
        n (job_id, placed, run_at, priority, max_attempts, kind, args, stored)
    where n.placed and n.run_at is not null;
    for v_priority in
        select distinct n.priority from unnest(v_priorities, v_placed) n (priority, placed) where n.placed order by 1
    loop
        perform "@schema@".announce_schedule(p_queue, v_priority, n.run_at)
        from (select min(n.run_at) as run_at from unnest(v_run_at, v_placed, v_priorities) n (run_at, placed, priority)
              where n.placed and n.priority = v_priority) n
        where n.run_at is not null;
        continue when not exists (select from unnest(v_run_at, v_placed, v_priorities) n (run_at, placed, priority)
                                  where n.placed and n.run_at is null and n.priority = v_priority);
        select * into v_lane from "@schema@".enter_lane(p_queue, v_priority);
        v_chapter := pg_sequence_last_value('"@schema@".head_fence'::regclass);
        insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
        select "@schema@".ring_slot(v_chapter), v_lane.o_lane, v_chapter, nextval(v_lane.o_number_seq), n.job_id, p_now,
               0, 0, n.max_attempts, n.kind, n.args, n.stored
        from unnest(job_ids, v_placed, v_run_at, v_priorities, v_max_attempts, v_kinds, p_args, v_stored)
            n (job_id, placed, run_at, priority, max_attempts, kind, args, stored)
        where n.placed and n.run_at is null and n.priority = v_priority;
        perform "@schema@".leave_lane(v_lane.o_lane, v_lane.o_sleeper_seq, v_chapter);
    end loop;
    if not exists (select from unnest(v_keys) k where k is not null) then
        created := null;
    end if;
    return next;
end $$;
