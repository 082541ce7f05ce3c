-- The part of enqueue_jobs for one job that can run at once: what a web request enqueues. Internal. Returns its id.
-- The steps of check_payloads, enter_lane and leave_lane stand here flat: nested, they took as long again as the insert.
-- Locks: (lane, generation) shared. Raises OC007, 22023, 40001.
create or replace function "@schema@".enqueue_one(p_queue text, p_kind text, p_args text, p_options jsonb) returns bigint
language plpgsql as $$
declare
    v_args json;
    v_priority integer := 2;
    v_max_attempts integer := 20;
    v_option record;
    v_stored jsonb;
    v_lane record;
    v_chapter integer;
    v_job bigint;
begin
    if not coalesce(length(p_kind) between 1 and 200 and octet_length(p_args) <= 1048576 and strpos(p_args, '\u') = 0, false) then
        perform "@schema@".check_payloads_each(array[p_kind], array[p_args]);
    end if;
    begin
        v_args := p_args;
    exception when others then
        null;   -- the parser's message quotes the payload, so it is not passed on
    end;
    if v_args is null then
        raise exception 'args: an element is not valid JSON' using errcode = '22023';
    end if;
    if p_options is not null then
        v_option := "@schema@".read_options(p_options, null);
        v_priority := v_option.o_priority;
        v_max_attempts := v_option.o_max_attempts;
        v_stored := v_option.o_stored;
    end if;
    loop
        select l.lane, l.number_seq, l.sleeper_seq, l.generation_seq, pg_sequence_last_value(l.generation_seq) as generation
        into v_lane
        from "@schema@".lane l where l.queue = p_queue and l.priority = v_priority and l.shard = 0;
        if not found then
            perform "@schema@".adopt_lane(p_queue, v_priority);
            continue;
        end if;
        exit when pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".ready'),
                "@schema@".generation_key(v_lane.lane, v_lane.generation)) is not null
            and pg_sequence_last_value(v_lane.generation_seq) = v_lane.generation;
    end loop;
    v_chapter := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
    values ("@schema@".ring_slot(v_chapter), v_lane.lane, v_chapter, nextval(v_lane.number_seq),
        nextval('"@schema@".job_number'::regclass), "@schema@".store_now(), 0, 0, v_max_attempts, p_kind, v_args, v_stored)
    returning job_id into v_job;
    if v_chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) or pg_sequence_last_value(v_lane.sleeper_seq) > 0 then
        perform "@schema@".leave_lane(v_lane.lane, v_lane.sleeper_seq, v_chapter);
    end if;
    return v_job;
end $$;
