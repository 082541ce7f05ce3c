-- Guarantee: the job, which may run at once, exists if and only if the caller's transaction commits; any transaction,
-- savepoints included. What a web request enqueues: unique keys, times and parents need enqueue_jobs. Returns the job's
-- id. For producer. Locks: schema (shared), (lane, generation) shared. Raises OC004, OC007, 22023 (names the field,
-- never a value), 40001 (chapter reclaimed: retry).
create or replace function "@schema@".enqueue_job(p_queue text, p_kind text, p_args text, p_priority integer,
    p_max_attempts integer, p_options jsonb, p_epoch bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    v_lane smallint;
    v_number_seq regclass;
    v_sleeper_seq regclass;
    v_generation_seq regclass;
    v_generation bigint;
    v_chapter integer;
    v_job bigint;
    v_args json;
begin
    -- The steps of enter_runtime, enter_lane and leave_lane stand here flat, as few expressions as they can be:
    -- PL/pgSQL prepares each expression anew in each transaction, and nested they took twice as long as the insert.
    if pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".store_metadata'), 0) is null
        or coalesce(p_epoch <> nullif(pg_sequence_last_value('"@schema@".epoch_fence'::regclass), 0), true) then
        perform "@schema@".enter_runtime(p_epoch);
    end if;
    if not coalesce(p_kind <> '' and length(p_kind) <= 200 and p_max_attempts between 1 and 32767
        and octet_length(p_args) <= 1048576 and strpos(p_args, e'\\u') = 0, false) then
        perform "@schema@".check_job(p_kind, p_args, p_max_attempts);
    end if;
    begin
        v_args := p_args;
    exception when others then
        null;   -- the parser's message quotes the payload, so it is not passed on
    end;
    if v_args is null then
        raise exception 'args: not valid JSON' using errcode = '22023';
    end if;
    if p_options is not null then
        perform "@schema@".check_stored_options(p_options);
    end if;
    loop
        select l.lane, l.number_seq, l.sleeper_seq, l.generation_seq, pg_sequence_last_value(l.generation_seq)
        into v_lane, v_number_seq, v_sleeper_seq, v_generation_seq, v_generation
        from "@schema@".lane l where l.queue = p_queue and l.priority = p_priority and l.shard = 0;
        if v_lane is null then
            perform "@schema@".adopt_lane(p_queue, p_priority);
            continue;
        end if;
        -- A claim may have moved the generation between the read and the lock, and settled it already.
        exit when pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".ready'),
                "@schema@".generation_key(v_lane, v_generation)) is not null
            and pg_sequence_last_value(v_generation_seq) = v_generation;
    end loop;
    v_chapter := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    v_job := nextval('"@schema@".job_number'::regclass);
    insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
    values ("@schema@".ring_slot(v_chapter), v_lane, v_chapter, nextval(v_number_seq), v_job, "@schema@".store_now(),
        0, 0, p_max_attempts, p_kind, v_args, p_options);
    if v_chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) or pg_sequence_last_value(v_sleeper_seq) > 0 then
        perform "@schema@".leave_lane(v_lane, v_sleeper_seq, v_chapter);
    end if;
    return v_job;
end $$;
