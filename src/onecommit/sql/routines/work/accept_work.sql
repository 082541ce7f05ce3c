-- Guarantee: Work, dispatch and history exist with the caller's commit, once for each identity in the scope; the same
-- request again is answered with its original (duplicate). Refused, the transaction usable: ASDUR102 (other request),
-- 107 (scope), 108 (epoch), 115 (store), 119 (a live worker of an exit-aware contract lacks work_exit_v1), 121
-- (deadline). For work_acceptor. Locks: schema, scope (shared). Raises 22023, OC002 (savepoint; a duplicate and a
-- refusal are answered there too), 40001 (scope or request changed after the snapshot, outside READ COMMITTED).
create or replace function "@schema@".accept_work(
    p_scope_id text, p_command_id text, p_idempotency_key text, p_contract_name text, p_contract_version text,
    p_exit_aware boolean, p_codec text, p_classification text, p_retention_id text, p_payload bytea, p_safety text,
    p_retry_algorithm text, p_max_attempts integer, p_max_elapsed_us bigint, p_initial_delay_us bigint,
    p_max_delay_us bigint, p_lease_us bigint, p_renewal_us bigint, p_max_lease_us bigint, p_plan_version smallint,
    p_offsets_us bigint[], p_circuit_us bigint, p_deadline timestamptz, p_due_at timestamptz, p_priority smallint,
    p_store_id uuid, p_epoch bigint)
returns table (outcome text, code text, work_id bigint, activity_id uuid, command_id text, revision bigint, accepted_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_digest constant bytea := sha256(p_payload);
    v_schema constant smallint := case when p_plan_version is null then 1 else 2 end;
    v_fingerprint bytea;
    v_problem constant text := coalesce(
        "@schema@".acceptance_problem(
            p_scope_id, p_command_id, p_idempotency_key, p_contract_name, p_contract_version, p_exit_aware, p_codec,
            p_classification, p_retention_id, p_payload, p_safety, p_priority, p_store_id),
        "@schema@".work_retry_problem(
            p_retry_algorithm, p_max_attempts, p_max_elapsed_us, p_initial_delay_us, p_max_delay_us, p_lease_us,
            p_renewal_us, p_max_lease_us),
        "@schema@".work_plan_problem(
            p_plan_version, p_offsets_us, p_circuit_us, p_deadline, p_due_at, p_max_attempts, p_max_elapsed_us));
    v_new record;
    v_found record;
    v_refusal text;
    v_now timestamptz;
    v_done boolean;
begin
    if v_problem is not null then
        raise exception '%', v_problem using errcode = '22023';
    end if;
    v_fingerprint := "@schema@".work_fingerprint(p_scope_id, p_contract_name, p_contract_version, p_codec, p_classification,
        p_retention_id, v_digest, p_safety, p_retry_algorithm, p_max_attempts, p_max_elapsed_us, p_initial_delay_us,
        p_max_delay_us, p_lease_us, p_renewal_us, p_max_lease_us, p_due_at, p_plan_version, p_offsets_us, p_circuit_us,
        p_deadline);
    outcome := 'refused';
    code := "@schema@".enter_acceptance(p_scope_id, p_store_id, p_epoch);
    <<decided>>
    begin
        exit decided when code <> 'ASDUR113';
        v_now := "@schema@".store_now();
        v_refusal := case
            when p_deadline <= v_now then 'ASDUR121'
            when p_exit_aware and "@schema@".lacks_exit_workers(p_contract_name, p_contract_version) then 'ASDUR119'
        end;
        if v_refusal is null then
            v_done := code is null or "@schema@".create_scope(p_scope_id, v_now);
            code := null;
            insert into "@schema@".work (
                scope_id, command_id, idempotency_key, contract_name, contract_version, exit_aware, codec, classification,
                retention_id, payload_sha256, safety, retry_algorithm, max_attempts, max_elapsed_us, initial_delay_us,
                max_delay_us, lease_us, renewal_us, max_lease_us, plan_version, offsets_us, circuit_us, deadline, due_at,
                priority, fingerprint_schema, fingerprint, accepted_at, scope_generation, epoch, eligible_at)
            select p_scope_id, p_command_id, p_idempotency_key, p_contract_name, p_contract_version, p_exit_aware, p_codec,
                p_classification, p_retention_id, v_digest, p_safety, p_retry_algorithm, p_max_attempts, p_max_elapsed_us,
                p_initial_delay_us, p_max_delay_us, p_lease_us, p_renewal_us, p_max_lease_us, p_plan_version, p_offsets_us,
                p_circuit_us, p_deadline, p_due_at, p_priority, v_schema, v_fingerprint, v_now, s.generation, p_epoch,
                coalesce(p_due_at, v_now)
            from "@schema@".scope s where s.scope_id = p_scope_id
            on conflict do nothing  -- waits for another transaction that accepts the same
            returning work.xmin, work as item into v_new;
            if found then
                -- Inside any subtransaction the row carries that subtransaction's id.
                if v_new.xmin <> pg_current_xact_id()::xid then
                    raise exception 'accept_work was called inside a savepoint' using errcode = 'OC002',
                        hint = 'Call it at the top level of the transaction: outside begin_nested(), nested atomic() and '
                            'nested conn.transaction() blocks.';
                end if;
                v_done := "@schema@".place_work(v_new.item, p_payload, p_epoch, v_now);
                outcome := 'accepted';
                work_id := (v_new.item).work_id;
                activity_id := (v_new.item).activity_id;
                command_id := p_command_id;
                revision := 1;
                accepted_at := v_now;
                exit decided;
            end if;
        end if;
        -- Not new, or too late to be new. A new statement: what others committed is visible (READ COMMITTED).
        v_found := "@schema@".find_acceptance(p_scope_id, p_command_id, p_idempotency_key, v_schema, v_fingerprint);
        if v_found.outcome is distinct from 'duplicate' then
            code := case when v_found.outcome is null then coalesce(v_refusal, 'ASDUR102') else 'ASDUR102' end;
            exit decided;
        end if;
        code := null;
        outcome := 'duplicate';
        work_id := (v_found.work).work_id;
        activity_id := (v_found.work).activity_id;
        command_id := (v_found.work).command_id;
        revision := (v_found.work).revision;
        accepted_at := (v_found.work).accepted_at;
    end decided;
    v_done := "@schema@".leave_scope();
    return next;
end $$;
