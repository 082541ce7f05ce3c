-- Guarantee: the Work is canceled if no effect can have happened (canceled); else its admitted attempt is asked to stop
-- (requested), or it waits for evidence by its safety class (suspended). The same command again: duplicate; refused
-- with 102, 107, 108, 110, 111 or 113. For work_acceptor, work_operator. Locks: schema, scope (shared), command, Work,
-- dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".cancel_work(
    p_scope_id text, p_command_id text, p_work_id bigint, p_actor text, p_reason text, p_epoch bigint)
returns table (outcome text, code text, state text, revision bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_fingerprint constant bytea := "@schema@".command_fingerprint('cancel', array[p_work_id::text, p_actor, p_reason]);
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
        from "@schema@".replayed_command(p_scope_id, p_command_id, 'cancel', v_fingerprint) c;
        exit decided when outcome is not null;
        v_work := "@schema@".lock_work(p_scope_id, p_work_id);
        v_now := "@schema@".store_now();
        code := "@schema@".operator_code(v_work, null);
        if code is not null then
            outcome := 'refused';
            state := v_work.state;
            revision := v_work.revision;
            exit decided;
        end if;
        outcome := "@schema@".settle_cancel(v_work, p_command_id, p_actor, p_epoch, v_now);
        select r.* into code, state, revision
        from "@schema@".record_command(p_scope_id, p_command_id, 'cancel', v_fingerprint, p_work_id, outcome, p_actor, p_reason, v_now) r;
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
