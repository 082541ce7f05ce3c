-- Guarantee: what the begun command found out is recorded, once, about the permit that it asked about: applied,
-- not_applied, or unknown, which changes nothing (recorded). The same again: duplicate. Refused with 102, 108, 110,
-- 111, 113, 116, 117 (applied without a result), 118, or 112: the Work has moved, and what was found out is discarded.
-- Also in a disabled scope. For work_operator. Locks: schema, scope (shared), command, Work, dispatch, permit. Raises
-- 22023, OC012.
create or replace function "@schema@".reconcile_finish(
    p_scope_id text, p_command_id text, p_work_id bigint, p_revision bigint, p_evidence text, p_result bytea,
    p_result_codec text, p_epoch bigint)
returns table (outcome text, code text, state text, revision bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_command "@schema@".operator_command;
    v_work "@schema@".work;
    v_now timestamptz;
begin
    perform "@schema@".check_evidence(p_evidence, p_result, p_result_codec);
    outcome := 'refused';
    code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    <<decided>>
    begin
        exit decided when code <> 'ASDUR107';
        v_command := "@schema@".begun_command(p_scope_id, p_command_id);
        v_work := "@schema@".lock_work(p_scope_id, p_work_id);
        v_now := "@schema@".store_now();
        state := v_work.state;
        revision := v_work.revision;
        if v_command.state = 'finished' then
            code := 'ASDUR102';
            if v_command.work_id = p_work_id and v_command.outcome = p_evidence and (p_evidence <> 'applied' or exists (
                select from "@schema@".work_result r
                where r.work_id = p_work_id and r.sha256 = sha256(p_result) and r.codec = p_result_codec)) then
                outcome := 'duplicate';
                code := v_command.code;
                state := v_command.to_state;
                revision := v_command.revision;
            end if;
            exit decided;
        end if;
        code := case
            when v_command.command_id is null then 'ASDUR116'
            when v_command.work_id <> p_work_id then 'ASDUR102'
            when v_command.expected_revision <> p_revision then 'ASDUR112'
            else coalesce("@schema@".operator_code(v_work, p_revision), "@schema@".reconcile_code(v_work, p_command_id, p_epoch, v_now))
        end;
        code := coalesce(code, case when p_evidence = 'applied' and p_result is null then 'ASDUR117' end);
        exit decided when code is not null;
        outcome := 'recorded';
        if p_evidence = 'unknown' then
            perform "@schema@".write_work_history(
                v_work, 'reconciled_unknown', v_work.state, v_work.revision, p_epoch, v_now, v_work.code, p_command_id,
                v_command.actor);
        else
            perform "@schema@".apply_evidence(
                v_work, v_command.permit_id, p_evidence, p_result, p_result_codec, 'reconciled', p_command_id,
                v_command.actor, p_epoch, v_now);
        end if;
        select w.code, w.state, w.revision into code, state, revision from "@schema@".work w where w.work_id = p_work_id;
        update "@schema@".operator_command c
        set state = 'finished', outcome = p_evidence, code = reconcile_finish.code, to_state = reconcile_finish.state,
            revision = reconcile_finish.revision, owner = null, lease_expires_at = null, finished_at = v_now
        where c.scope_id = p_scope_id and c.command_id = p_command_id;
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
