-- A retry of an attempt that was the last one is a failure. Internal.
create or replace function "@schema@".final_outcome(p_outcome "@schema@".outcome, p_attempt integer, p_max_attempts integer)
returns "@schema@".outcome
language sql immutable as $$
    select case when p_outcome = 'retried' and p_attempt >= p_max_attempts then 'failed'::"@schema@".outcome else p_outcome end
$$;
