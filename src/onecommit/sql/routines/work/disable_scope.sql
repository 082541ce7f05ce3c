-- Guarantee: the scope accepts and runs nothing any more, for good, and all its unfinished Work is decided in the same
-- transaction: canceled_before_effect, or suspended for evidence. The same command again: duplicate; refused with 102,
-- 107, 108, 113, or 114 at another generation. For work_operator. Locks: schema, scope (exclusive), command, scope row,
-- Work, dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".disable_scope(
    p_scope_id text, p_command_id text, p_generation bigint, p_actor text, p_reason text, p_epoch bigint)
returns table (outcome text, code text, generation bigint, projected bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_fingerprint constant bytea := "@schema@".command_fingerprint('disable', array[p_generation::text, p_actor, p_reason]);
    v_scope "@schema@".scope;
    v_now timestamptz;
begin
    perform "@schema@".check_command(p_command_id, p_actor, p_reason);
    outcome := 'refused';
    code := "@schema@".lock_scope(p_scope_id, p_epoch, true);
    <<decided>>
    begin
        exit decided when code is not null;
        select c.outcome, c.code, c.revision into outcome, code, generation
        from "@schema@".replayed_command(p_scope_id, p_command_id, 'disable', v_fingerprint) c;
        if outcome = 'duplicate' then
            select h.projected into projected from "@schema@".scope_history h
            where h.scope_id = p_scope_id and h.generation = disable_scope.generation;
        end if;
        exit decided when outcome is not null;
        select s.* into v_scope from "@schema@".scope s where s.scope_id = p_scope_id for update;
        v_now := "@schema@".store_now();
        outcome := 'refused';
        generation := v_scope.generation;
        code := case
            when v_scope.scope_id is null then 'ASDUR113'
            when v_scope.state = 'disabled' then 'ASDUR107'
            when p_generation is distinct from v_scope.generation then 'ASDUR114'
        end;
        exit decided when code is not null;
        outcome := 'disabled';
        update "@schema@".scope s set state = 'disabled', generation = s.generation + 1, disabled_at = v_now
        where s.scope_id = p_scope_id returning s.generation into generation;
        projected := "@schema@".project_disabled(p_scope_id, p_command_id, p_actor, p_epoch, v_now);
        insert into "@schema@".scope_history (scope_id, generation, event, command_id, actor, reason, projected, at)
        values (p_scope_id, disable_scope.generation, 'disabled', p_command_id, p_actor, p_reason, disable_scope.projected, v_now);
        insert into "@schema@".operator_command (
            scope_id, command_id, operation, fingerprint, state, outcome, revision, to_state, actor, reason, created_at, finished_at)
        values (p_scope_id, p_command_id, 'disable', v_fingerprint, 'finished', 'disabled', disable_scope.generation,
                'disabled', p_actor, p_reason, v_now, v_now);
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
