-- One options object decided: defaults filled in, bounds checked; unknown keys and bad values are refused with 22023
-- that names the key. o_stored is what travels with the job. Internal.
create or replace function "@schema@".read_options(p_options jsonb, p_now timestamptz,
    out o_priority integer, out o_max_attempts integer, out o_run_at timestamptz,
    out o_unique_key bytea, out o_keep_until timestamptz, out o_after bigint, out o_on_parent_failure text, out o_stored jsonb)
language plpgsql stable as $$
begin
    o_priority := 2;
    o_max_attempts := 20;
    if p_options is null then
        return;
    end if;
    if jsonb_typeof(p_options) <> 'object' then
        raise exception 'options: must be an object, or an array with one object for each job' using errcode = '22023';
    end if;
    if p_options ? 'priority' then
        o_priority := "@schema@".option_integer(p_options, 'priority', 1, 4, 2);
    end if;
    if p_options ? 'max_attempts' then
        o_max_attempts := "@schema@".option_integer(p_options, 'max_attempts', 1, 32767, 20);
    end if;
    o_stored := p_options - '{priority,max_attempts}'::text[];
    if o_stored = '{}'::jsonb then
        o_stored := null;
        return;
    end if;
    o_run_at := coalesce("@schema@".option_time(p_options, 'run_at'), p_now
        + "@schema@".option_integer(p_options, 'delay_us', 0, 3155760000000000, null) * interval '1 microsecond');
    o_unique_key := "@schema@".option_unique_key(p_options -> 'unique');
    o_keep_until := p_now
        + "@schema@".option_integer(p_options -> 'unique', 'window_us', 1, 3155760000000000, null) * interval '1 microsecond';
    if p_options ?| '{after,on_parent_failure}' then
        o_after := "@schema@".option_integer(p_options, 'after', 1, 9223372036854775807, null);
        o_on_parent_failure := "@schema@".option_parent_failure(p_options, o_after);
    end if;
    o_stored := o_stored - '{run_at,delay_us,unique,after,on_parent_failure}'::text[];
    perform "@schema@".check_stored_options(o_stored);
    if o_unique_key is not null then
        o_stored := o_stored || jsonb_build_object('unique', encode(o_unique_key, 'hex'));     -- a retried dead letter takes it again
    end if;
    o_stored := nullif(o_stored, '{}'::jsonb);
end $$;
