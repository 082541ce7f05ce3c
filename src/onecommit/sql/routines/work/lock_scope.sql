-- Guarantee: null, and the transaction holds the shared schema lock and the scope's advisory lock and its context is
-- the scope; or ASDUR108, when p_epoch is not the active one. Internal. Locks: schema (shared), scope.
-- The context is transaction-local and cleared by leave_scope: a function with a SET clause would do that by itself,
-- but only a superuser may create one for a parameter of ours.
create or replace function "@schema@".lock_scope(p_scope_id text, p_epoch bigint, p_exclusive boolean) returns text
language plpgsql as $$
declare
    v_schema constant boolean := pg_advisory_xact_lock_shared("@schema@".schema_lock_class(), 0) is not null;
    v_done boolean;
begin
    if p_epoch is null or p_epoch = 0 or p_epoch <> pg_sequence_last_value('"@schema@".epoch_fence'::regclass) then
        return 'ASDUR108';
    end if;
    if p_exclusive then
        v_done := pg_advisory_xact_lock("@schema@".lock_class('"@schema@".scope'), "@schema@".scope_key(p_scope_id)) is not null;
    else
        v_done := pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".scope'), "@schema@".scope_key(p_scope_id)) is not null;
    end if;
    v_done := set_config('onecommit.scope_id', p_scope_id, true) is not null;
    return null;
end $$;
