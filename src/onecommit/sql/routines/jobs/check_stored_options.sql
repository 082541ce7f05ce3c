-- Guarantee: the options that travel with the job are known, have their types and together at most 1 MiB; else 22023
-- that names the key, never the value. Internal.
create or replace function "@schema@".check_stored_options(p_stored jsonb) returns void
language plpgsql immutable as $$
begin
    if jsonb_typeof(p_stored) <> 'object' then
        raise exception 'options: must be an object' using errcode = '22023';
    end if;
    if p_stored - '{timeout_us,tags,trace,meta}'::text[] <> '{}'::jsonb then
        raise exception 'options: unknown key' using errcode = '22023', hint = 'Known keys: timeout_us, tags, trace, '
            'meta; and for enqueue_jobs: priority, max_attempts, run_at, delay_us, unique, after, on_parent_failure.';
    end if;
    if p_stored ? 'timeout_us' then
        perform "@schema@".option_integer(p_stored, 'timeout_us', 1, 3155760000000000, null);
    end if;
    if p_stored ? 'tags' and (jsonb_typeof(p_stored -> 'tags') not in ('array', 'null')
        or jsonb_path_exists(p_stored -> 'tags', 'strict $[*] ? (@.type() <> "string")', silent => true)) then
        raise exception 'tags: must be an array of texts' using errcode = '22023';
    end if;
    if jsonb_typeof(p_stored -> 'trace') not in ('object', 'null') then
        raise exception 'trace: must be an object' using errcode = '22023';
    end if;
    if jsonb_typeof(p_stored -> 'meta') not in ('object', 'null') then
        raise exception 'meta: must be an object' using errcode = '22023';
    end if;
    if octet_length(p_stored::text) > 1048576 then
        raise exception 'options: must be at most 1048576 bytes' using errcode = '22023';
    end if;
end $$;
