-- The reconciliation under this command id, or null. Internal, in the scope. Locks: command.
create or replace function "@schema@".begun_command(p_scope_id text, p_command_id text) returns "@schema@".operator_command
language plpgsql as $$
declare
    v_locked constant boolean := pg_advisory_xact_lock(
        "@schema@".lock_class('"@schema@".operator_command'), "@schema@".scope_key(p_scope_id || '/' || p_command_id)) is not null;
    v_command "@schema@".operator_command;
begin
    select c.* into v_command from "@schema@".operator_command c
    where c.scope_id = p_scope_id and c.command_id = p_command_id and c.operation = 'reconcile';
    return v_command;
end $$;
