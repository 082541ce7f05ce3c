-- Guarantee: the transaction owns this command id of the scope, and outcome is null: nobody has used it; or duplicate,
-- with what the same command led to; or refused with ASDUR102: it was another command. Internal, in the scope.
-- Locks: command.
create or replace function "@schema@".replayed_command(
    p_scope_id text, p_command_id text, p_operation text, p_fingerprint bytea,
    out outcome text, out code text, out state text, out revision bigint)
language plpgsql as $$
declare
    v_locked constant boolean := pg_advisory_xact_lock(
        "@schema@".lock_class('"@schema@".operator_command'), "@schema@".scope_key(p_scope_id || '/' || p_command_id)) is not null;
    v_known "@schema@".operator_command;
begin
    select c.* into v_known from "@schema@".operator_command c
    where c.scope_id = p_scope_id and c.command_id = p_command_id;
    if v_known.command_id is null then
        return;
    end if;
    if v_known.operation <> p_operation or v_known.fingerprint <> p_fingerprint then
        outcome := 'refused';
        code := 'ASDUR102';
    elsif v_known.state = 'finished' then
        outcome := 'duplicate';
        code := v_known.code;
        state := v_known.to_state;
        revision := v_known.revision;
    end if;
end $$;
