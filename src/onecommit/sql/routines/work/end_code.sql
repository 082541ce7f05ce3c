-- The code that Work stands with after decide_end: 106 outranks all while an effect may have happened; then what closed
-- the admission (121 the deadline, 120 the rest of an execution policy); then the application's own.
create or replace function "@schema@".end_code(p_state text, p_closed text, p_planned boolean, p_own text) returns text
language sql immutable parallel safe as $$
    select case
        when p_state in ('suspended_ambiguous_external_outcome', 'suspended_reconciliation_required',
                         'suspended_manual_resolution') then 'ASDUR106'
        when p_state <> 'failed' then p_own
        when p_closed = 'deadline' then 'ASDUR121'
        when p_closed is not null and p_planned then 'ASDUR120'
        else coalesce(p_own, p_closed)
    end
$$;
