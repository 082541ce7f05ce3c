-- What is wrong with a policy, naming the field: null if it is exponential-v1 within bounds. Internal.
create or replace function "@schema@".work_retry_problem(
    p_algorithm text, p_max_attempts integer, p_max_elapsed_us bigint, p_initial_delay_us bigint, p_max_delay_us bigint,
    p_lease_us bigint, p_renewal_us bigint, p_max_lease_us bigint) returns text
language plpgsql immutable parallel safe as $$
begin
    return coalesce(
        "@schema@".duration_problem('max_elapsed_us', p_max_elapsed_us),
        "@schema@".duration_problem('initial_delay_us', p_initial_delay_us),
        "@schema@".duration_problem('max_delay_us', p_max_delay_us),
        "@schema@".duration_problem('lease_us', p_lease_us),
        "@schema@".duration_problem('renewal_us', p_renewal_us),
        "@schema@".duration_problem('max_lease_us', p_max_lease_us),
        case
            when p_algorithm is distinct from 'exponential-v1' then 'retry_algorithm: must be exponential-v1'
            when (p_max_attempts between 1 and 1000) is not true then 'max_attempts: must be from 1 to 1000'
            when p_max_delay_us < p_initial_delay_us then 'max_delay_us: must not be below initial_delay_us'
            when p_renewal_us >= p_lease_us then 'renewal_us: must be below lease_us'
            when p_max_lease_us < p_lease_us then 'max_lease_us: must not be below lease_us'
        end);
end $$;
