-- Guarantee: names, payload and safety of a request are within bounds; else 22023 that names the field, never the value.
-- Internal.
create or replace function "@schema@".check_acceptance(
    p_scope_id text, p_command_id text, p_idempotency_key text, p_contract_name text, p_contract_version text,
    p_exit_aware boolean, p_codec text, p_classification text, p_retention_id text, p_payload bytea, p_safety text,
    p_priority smallint, p_store_id uuid) returns void
language plpgsql immutable as $$
begin
    perform "@schema@".check_identifier('scope_id', p_scope_id);
    perform "@schema@".check_identifier('command_id', p_command_id);
    perform "@schema@".check_identifier('idempotency_key', p_idempotency_key);
    perform "@schema@".check_identifier('contract_name', p_contract_name);
    perform "@schema@".check_identifier('contract_version', p_contract_version, 100);
    perform "@schema@".check_identifier('codec', p_codec);
    perform "@schema@".check_identifier('classification', p_classification);
    perform "@schema@".check_identifier('retention_id', p_retention_id);
    if p_exit_aware is null then
        raise exception 'exit_aware: must not be null' using errcode = '22023';
    elsif (octet_length(p_payload) <= 262144) is not true then
        raise exception 'payload: must be at most 262144 bytes' using errcode = '22023';
    elsif (p_safety in ('idempotent', 'provider_keyed', 'reconcile_before_retry', 'manual_resolution')) is not true then
        raise exception 'safety: must be idempotent, provider_keyed, reconcile_before_retry or manual_resolution'
            using errcode = '22023';
    elsif p_exit_aware and p_safety <> 'provider_keyed' then
        raise exception 'exit_aware: needs the safety provider_keyed' using errcode = '22023';
    elsif (p_priority between -100 and 100) is not true then
        raise exception 'priority: must be from -100 to 100' using errcode = '22023';
    elsif p_store_id is null then
        raise exception 'store_id: must not be null' using errcode = '22023';
    end if;
end $$;
