-- What is wrong with the names, the payload or the safety of a request, naming the field and never the value: null if
-- nothing is. Internal.
create or replace function "@schema@".acceptance_problem(
    p_scope_id text, p_command_id text, p_idempotency_key text, p_contract_name text, p_contract_version text,
    p_exit_aware boolean, p_codec text, p_classification text, p_retention_id text, p_payload bytea, p_safety text,
    p_priority smallint, p_store_id uuid) returns text
language plpgsql immutable parallel safe as $$
begin
    return coalesce(
        "@schema@".identifier_problem('scope_id', p_scope_id),
        "@schema@".identifier_problem('command_id', p_command_id),
        "@schema@".identifier_problem('idempotency_key', p_idempotency_key),
        "@schema@".identifier_problem('contract_name', p_contract_name),
        "@schema@".identifier_problem('contract_version', p_contract_version, 100),
        "@schema@".identifier_problem('codec', p_codec),
        "@schema@".identifier_problem('classification', p_classification),
        "@schema@".identifier_problem('retention_id', p_retention_id),
        case
            when p_exit_aware is null then 'exit_aware: must not be null'
            when (octet_length(p_payload) <= 262144) is not true then 'payload: must be at most 262144 bytes'
            when (p_safety in ('idempotent', 'provider_keyed', 'reconcile_before_retry', 'manual_resolution')) is not true
                then 'safety: must be idempotent, provider_keyed, reconcile_before_retry or manual_resolution'
            when p_exit_aware and p_safety <> 'provider_keyed' then 'exit_aware: needs the safety provider_keyed'
            when (p_priority between -100 and 100) is not true then 'priority: must be from -100 to 100'
            when p_store_id is null then 'store_id: must not be null'
        end);
end $$;
