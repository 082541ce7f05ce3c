-- Guarantee: ambiguous Work of a safe class, or Work whose contract was unavailable, is tried once more, at once or in
-- its next slot, with one attempt more than it had (released). The same command again: duplicate. Refused with 102,
-- 107, 108, 110, 111, 112, 113, 116 for its state, 117 where evidence must come first, 120 or 121 where its time is
-- over. For work_operator. Locks: schema, scope (shared), command, Work, dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".retry_safe(
    p_scope_id text, p_command_id text, p_work_id bigint, p_revision bigint, p_actor text, p_reason text, p_epoch bigint)
returns table (outcome text, code text, state text, revision bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_fingerprint constant bytea := "@schema@".command_fingerprint(
        'retry_safe', array[p_work_id::text, p_revision::text, p_actor, p_reason]);
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
        from "@schema@".replayed_command(p_scope_id, p_command_id, 'retry_safe', v_fingerprint) c;
        exit decided when outcome is not null;
        v_work := "@schema@".lock_work(p_scope_id, p_work_id);
        v_now := "@schema@".store_now();
        outcome := 'refused';
        state := v_work.state;
        revision := v_work.revision;
        code := coalesce(
            "@schema@".operator_code(v_work, coalesce(p_revision, -1)),
            "@schema@".retry_safe_code(v_work, "@schema@".has_unresolved(p_work_id, p_epoch), v_now));
        exit decided when code is not null;
        outcome := 'released';
        update "@schema@".work w set authorized_attempts = w.authorized_attempts + 1, epoch = p_epoch where w.work_id = p_work_id;
        perform "@schema@".move_work(v_work, "@schema@".waiting_end(v_work, v_now), 'retry_authorized', p_epoch, v_now, p_command_id, p_actor);
        select r.* into code, state, revision
        from "@schema@".record_command(
            p_scope_id, p_command_id, 'retry_safe', v_fingerprint, p_work_id, outcome, p_actor, p_reason, v_now) r;
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
