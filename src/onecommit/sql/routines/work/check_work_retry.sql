-- Guarantee: this is a policy exponential-v1 within bounds; else 22023 that names the field. Internal.
create or replace function "@schema@".check_work_retry(
    p_algorithm text, p_max_attempts integer, p_max_elapsed_us bigint, p_initial_delay_us bigint, p_max_delay_us bigint,
    p_lease_us bigint, p_renewal_us bigint, p_max_lease_us bigint) returns void
language plpgsql immutable as $$
declare
    v_problem text;
begin
    perform "@schema@".check_duration('max_elapsed_us', p_max_elapsed_us);
    perform "@schema@".check_duration('initial_delay_us', p_initial_delay_us);
    perform "@schema@".check_duration('max_delay_us', p_max_delay_us);
    perform "@schema@".check_duration('lease_us', p_lease_us);
    perform "@schema@".check_duration('renewal_us', p_renewal_us);
    perform "@schema@".check_duration('max_lease_us', p_max_lease_us);
    v_problem := case
        when p_algorithm is distinct from 'exponential-v1' then 'retry_algorithm: must be exponential-v1'
        when (p_max_attempts between 1 and 1000) is not true then 'max_attempts: must be from 1 to 1000'
        when p_max_delay_us < p_initial_delay_us then 'max_delay_us: must not be below initial_delay_us'
        when p_renewal_us >= p_lease_us then 'renewal_us: must be below lease_us'
        when p_max_lease_us < p_lease_us then 'max_lease_us: must not be below lease_us'
    end;
    if v_problem is not null then
        raise exception '%', v_problem using errcode = '22023';
    end if;
end $$;
