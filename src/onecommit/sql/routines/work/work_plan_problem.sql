-- What is wrong with an execution policy, naming the field: null if there is none, a deadline only, or a fixed plan whose
-- slots are its attempts. Whether the deadline has passed, the clock under the scope's lock decides. Internal.
create or replace function "@schema@".work_plan_problem(
    p_plan_version smallint, p_offsets_us bigint[], p_circuit_us bigint, p_deadline timestamptz, p_due_at timestamptz,
    p_max_attempts integer, p_max_elapsed_us bigint) returns text
language plpgsql immutable parallel safe as $$
declare
    v_slots constant integer := cardinality(p_offsets_us);
    -- What every client can read back in every time zone.
    v_first constant timestamptz := to_timestamp(0);
    v_last constant timestamptz := to_timestamp(253370764800);
begin
    if p_plan_version is null and p_offsets_us is null and p_circuit_us is null and p_deadline is null then
        return case when p_due_at not between v_first and v_last then 'due_at: must be in the years 1970 to 9998' end;
    end if;
    return case
        when p_plan_version <> 1 then 'plan_version: must be 1'
        when p_plan_version is null and (p_offsets_us is not null or p_deadline is not null)
            then 'plan_version: must be given with offsets or a deadline'
        when p_plan_version is not null and p_offsets_us is null and p_deadline is null
            then 'plan_version: needs offsets or a deadline'
        when (p_offsets_us is null) <> (p_circuit_us is null) then 'circuit_us: must be given with offsets, and only then'
        when p_deadline not between v_first and v_last then 'deadline: must be in the years 1970 to 9998'
        when p_due_at not between v_first and v_last then 'due_at: must be in the years 1970 to 9998'
        when p_due_at >= p_deadline then 'due_at: must be before the deadline'
        when p_offsets_us is null then null
        when p_due_at is not null then 'due_at: a plan begins with its acceptance'
        when v_slots not between 1 and 256 or array_ndims(p_offsets_us) <> 1 or array_lower(p_offsets_us, 1) <> 1
            then 'offsets_us: must be 1 to 256'
        when array_position(p_offsets_us, null) is not null or p_offsets_us[1] <> 0
            or exists (select from generate_series(2, v_slots) i where p_offsets_us[i] <= p_offsets_us[i - 1])
            then 'offsets_us: must begin with 0 and increase'
        when (p_circuit_us between 1 and 3660 * 86400000000) is not true then 'circuit_us: must be from 1 microsecond to 3660 days'
        when p_circuit_us <= p_offsets_us[v_slots] then 'circuit_us: must be above the last offset'
        when p_max_attempts <> v_slots then 'max_attempts: must be as many as there are offsets'
        when p_max_elapsed_us < p_circuit_us then 'max_elapsed_us: must not be below circuit_us'
    end;
end $$;
