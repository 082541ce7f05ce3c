-- What makes two requests the same request: SHA-256 over its tagged fields, version 1 of the encoding without, version 2
-- with an execution policy. Both identities, the priority and the time of acceptance are left out. The bytes are
-- published in docs/reference/work-fingerprints.md and frozen.
create or replace function "@schema@".work_fingerprint(
    p_scope_id text, p_contract_name text, p_contract_version text, p_codec text, p_classification text,
    p_retention_id text, p_payload_sha256 bytea, p_safety text, p_retry_algorithm text, p_max_attempts integer,
    p_max_elapsed_us bigint, p_initial_delay_us bigint, p_max_delay_us bigint, p_lease_us bigint, p_renewal_us bigint,
    p_max_lease_us bigint, p_due_at timestamptz, p_plan_version smallint, p_offsets_us bigint[], p_circuit_us bigint,
    p_deadline timestamptz) returns bytea
language plpgsql immutable parallel safe as $$
declare
    v_offsets bytea;
begin
    if p_offsets_us is not null then
        select string_agg("@schema@".fingerprint_number(o.us), ''::bytea order by o.n) into v_offsets
        from unnest(p_offsets_us) with ordinality o (us, n);
    end if;
    return sha256(
        "@schema@".fingerprint_text(case when p_plan_version is null then 'onecommit-work-1' else 'onecommit-work-2' end)
        || "@schema@".fingerprint_text(p_scope_id)
        || "@schema@".fingerprint_text(p_contract_name)
        || "@schema@".fingerprint_text(p_contract_version)
        || "@schema@".fingerprint_text(p_codec)
        || "@schema@".fingerprint_text(p_classification)
        || "@schema@".fingerprint_text(p_retention_id)
        || e'\\x62'::bytea || int4send(octet_length(p_payload_sha256)) || p_payload_sha256
        || "@schema@".fingerprint_text(p_safety)
        || "@schema@".fingerprint_text(p_retry_algorithm)
        || "@schema@".fingerprint_number(p_max_attempts)
        || "@schema@".fingerprint_number(p_max_elapsed_us)
        || "@schema@".fingerprint_number(p_initial_delay_us)
        || "@schema@".fingerprint_number(p_max_delay_us)
        || "@schema@".fingerprint_number(p_lease_us)
        || "@schema@".fingerprint_number(p_renewal_us)
        || "@schema@".fingerprint_number(p_max_lease_us)
        || "@schema@".fingerprint_time(p_due_at)
        || case when p_plan_version is null then ''::bytea else
            "@schema@".fingerprint_number(p_plan_version)
            || case when p_offsets_us is null then e'\\x6e'::bytea else
                e'\\x61'::bytea || int4send(cardinality(p_offsets_us)) || v_offsets end
            || "@schema@".fingerprint_number(p_circuit_us)
            || "@schema@".fingerprint_time(p_deadline) end);
end $$;
