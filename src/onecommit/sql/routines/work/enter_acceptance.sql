-- Guarantee: as enter_scope, of this store; a transaction of another isolation than READ COMMITTED meets a serialization
-- failure instead of an old scope. ASDUR113: nobody has used the scope, the lock keeps it active, and who accepts in it
-- creates it. Internal. Locks: schema, scope (shared).
create or replace function "@schema@".enter_acceptance(p_scope_id text, p_store_id uuid, p_epoch bigint) returns text
language plpgsql as $$
declare
    v_code constant text := "@schema@".lock_scope(p_scope_id, p_epoch, false);
    v_is_ours boolean;
    v_state text;
begin
    select m.store_id is not null, s.state into v_is_ours, v_state
    from (select) one
    left join "@schema@".store_metadata m on m.store_id = p_store_id
    left join "@schema@".scope s on s.scope_id = p_scope_id;
    if not v_is_ours or v_code is not null then
        return case when v_is_ours then v_code else 'ASDUR115' end;
    end if;
    if v_state is null or v_state = 'disabled' then
        return case when v_state is null then 'ASDUR113' else 'ASDUR107' end;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from "@schema@".scope s where s.scope_id = p_scope_id for share;
    end if;
    return null;
end $$;
