-- Guarantee: null, and the transaction holds the schema lock and the scope's lock, its context is the scope, and the
-- scope is active with this generation (null: any); else the code that says what does not hold. Not raised: the
-- caller's transaction stays usable. Internal; whoever enters leaves by leave_scope. Locks: schema, scope (shared).
create or replace function "@schema@".enter_scope(p_scope_id text, p_scope_generation bigint, p_epoch bigint) returns text
language plpgsql as $$
declare
    v_code constant pg_catalog.text := "@schema@".lock_scope(p_scope_id, p_epoch, false);
    v_scope "@schema@".scope;
begin
    if v_code is not null then
        return v_code;
    end if;
    select s.* into v_scope from "@schema@".scope s where s.scope_id = p_scope_id;
    return case
        when v_scope.scope_id is null then 'ASDUR113'
        when v_scope.state = 'disabled' then 'ASDUR107'
        when p_scope_generation <> v_scope.generation then 'ASDUR114'
    end;
end $$;
