-- Why an operator may not have this Work tried again at p_now: null; 117: an effect may have happened that evidence must
-- settle first; 116: its state; 120 or 121: its slots or its time are over, which nobody can reopen.
create or replace function "@schema@".retry_safe_code(p_work "@schema@".work, p_unresolved boolean, p_now timestamptz) returns text
language sql immutable parallel safe as $$
    select case
        when p_work.code = 'runtime_epoch_mismatch' or p_work.state not like 'suspended%' then 'ASDUR116'
        when p_work.state in ('suspended_reconciliation_required', 'suspended_manual_resolution')
            or p_work.state = 'suspended_contract_unavailable' and p_unresolved then 'ASDUR117'
        when p_work.cancel_requested_at is not null then 'ASDUR116'
        when "@schema@".admission_closed(p_work, p_now) = 'deadline' then 'ASDUR121'
        when "@schema@".admission_closed(p_work, p_now) is not null then 'ASDUR120'
        when p_work.offsets_us is null then null
        when p_work.attempt >= cardinality(p_work.offsets_us)
            or p_work.accepted_at + p_work.offsets_us[p_work.attempt + 1] * interval '1 microsecond' >= "@schema@".work_cutoff(p_work)
            then 'ASDUR120'
    end
$$;
