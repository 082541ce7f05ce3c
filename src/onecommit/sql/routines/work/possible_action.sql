-- What an operator can do now about Work that waits for one: release, reconcile, resolve, retry_safe, or, where that would
-- be refused (its time or its slots are over, or it cannot be prepared and may have had an effect), cancel, and then
-- what is possible. null: nothing is needed.
create or replace function "@schema@".possible_action(p_work "@schema@".work, p_unresolved boolean) returns text
language sql volatile parallel safe as $$
    select case
        when p_work.state not like 'suspended%' then null
        when p_work.code = 'runtime_epoch_mismatch' then 'release'
        when p_work.state = 'suspended_reconciliation_required' then 'reconcile'
        when p_work.state = 'suspended_manual_resolution' or p_work.cancel_requested_at is not null then 'resolve'
        when "@schema@".retry_safe_code(p_work, p_unresolved, "@schema@".store_now()) is not null then 'cancel'
        else 'retry_safe'
    end
$$;
