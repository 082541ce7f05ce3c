-- Guarantee: Work that an older epoch left behind goes on under this one, or waits for evidence by its class
-- (released). The same command again: duplicate. Refused with 102, 107, 108, 110, 111, 112, 113, or 116: no old epoch
-- holds it. For work_operator. Locks: schema, scope (shared), command, Work, dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".release_recovery(
    p_scope_id text, p_command_id text, p_work_id bigint, p_revision bigint, p_actor text, p_reason text, p_epoch bigint)
returns table (outcome text, code text, state text, revision bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_fingerprint constant bytea := "@schema@".command_fingerprint(
        'release_recovery', array[p_work_id::text, p_revision::text, p_actor, p_reason]);
    v_work "@schema@".work;
    v_now timestamptz;
begin
    perform "@schema@".check_command(p_command_id, p_actor, p_reason);
    outcome := 'refused';
    code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    <<decided>>
    begin
        exit decided when code is not null;
        select c.* into outcome, code, state, revision
        from "@schema@".replayed_command(p_scope_id, p_command_id, 'release_recovery', v_fingerprint) c;
        exit decided when outcome is not null;
        v_work := "@schema@".lock_work(p_scope_id, p_work_id);
        v_now := "@schema@".store_now();
        outcome := 'refused';
        state := v_work.state;
        revision := v_work.revision;
        code := coalesce(
            "@schema@".operator_code(v_work, coalesce(p_revision, -1)),
            case when v_work.state not like 'suspended%' or v_work.code is distinct from 'runtime_epoch_mismatch' then 'ASDUR116' end);
        exit decided when code is not null;
        outcome := 'released';
        perform "@schema@".release_work(v_work, p_command_id, p_actor, p_epoch, v_now);
        select r.* into code, state, revision
        from "@schema@".record_command(
            p_scope_id, p_command_id, 'release_recovery', v_fingerprint, p_work_id, outcome, p_actor, p_reason, v_now) r;
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
