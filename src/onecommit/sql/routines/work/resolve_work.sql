-- Guarantee: an operator says what happened under the newest unresolved permit, of Work for manual resolution or
-- canceled Work of a safe class, and the Work is decided by it (recorded). The same command again: duplicate. Refused
-- with 102, 108, 110, 111, 112, 113, 116 for its state, 117: unknown, or applied without a result. Also in a disabled
-- scope. For work_operator. Locks: schema, scope (shared), command, Work, dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".resolve_work(
    p_scope_id text, p_command_id text, p_work_id bigint, p_revision bigint, p_evidence text, p_result bytea,
    p_result_codec text, p_proof_sha256 bytea, p_actor text, p_reason text, p_epoch bigint)
returns table (outcome text, code text, state text, revision bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_fingerprint constant bytea := "@schema@".command_fingerprint('resolve', array[
        p_work_id::text, p_revision::text, p_evidence, encode(sha256(p_result), 'hex'), p_result_codec,
        encode(p_proof_sha256, 'hex'), p_actor, p_reason]);
    v_work "@schema@".work;
    v_permit "@schema@".effect_permit;
    v_now timestamptz;
begin
    perform "@schema@".check_command(p_command_id, p_actor, p_reason);
    perform "@schema@".check_evidence(p_evidence, p_result, p_result_codec);
    if octet_length(p_proof_sha256) <> 32 then
        raise exception 'proof_sha256: must be 32 bytes' using errcode = '22023';
    end if;
    outcome := 'refused';
    code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    <<decided>>
    begin
        exit decided when code <> 'ASDUR107';
        select c.* into outcome, code, state, revision
        from "@schema@".replayed_command(p_scope_id, p_command_id, 'resolve', v_fingerprint) c;
        exit decided when outcome is not null;
        v_work := "@schema@".lock_work(p_scope_id, p_work_id);
        v_now := "@schema@".store_now();
        outcome := 'refused';
        state := v_work.state;
        revision := v_work.revision;
        v_permit := "@schema@".unresolved_permit(p_work_id, p_epoch);
        code := coalesce("@schema@".operator_code(v_work, coalesce(p_revision, -1)), case
            when v_permit.permit_id is null or v_work.code = 'runtime_epoch_mismatch' then 'ASDUR116'
            when v_work.state <> 'suspended_manual_resolution' and not (
                v_work.state = 'suspended_ambiguous_external_outcome' and v_work.cancel_requested_at is not null) then 'ASDUR116'
            when p_evidence = 'unknown' or p_evidence = 'applied' and p_result is null then 'ASDUR117'
        end);
        exit decided when code is not null;
        outcome := 'recorded';
        perform "@schema@".apply_evidence(
            v_work, v_permit.permit_id, p_evidence, p_result, p_result_codec, 'resolved', p_command_id, p_actor, p_epoch, v_now);
        select r.* into code, state, revision
        from "@schema@".record_command(
            p_scope_id, p_command_id, 'resolve', v_fingerprint, p_work_id, p_evidence, p_actor, p_reason, v_now,
            p_proof_sha256) r;
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
