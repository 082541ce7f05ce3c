-- Where Work of this safety waits for evidence while an effect may have happened.
create or replace function "@schema@".suspended_state(p_safety text) returns text
language sql immutable strict parallel safe as $$
    select case p_safety
        when 'reconcile_before_retry' then 'suspended_reconciliation_required'
        when 'manual_resolution' then 'suspended_manual_resolution'
        else 'suspended_ambiguous_external_outcome'
    end
$$;
