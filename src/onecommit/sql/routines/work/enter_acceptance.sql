-- Guarantee: as enter_scope, where the scope is created at generation 1 if nobody has used it, and a transaction of
-- another isolation than READ COMMITTED meets a serialization failure instead of an old scope.
-- Internal. Locks: schema, scope (shared).
create or replace function "@schema@".enter_acceptance(p_scope_id text, p_store_id uuid, p_epoch bigint) returns text
language plpgsql as $$
declare
    v_code constant text := "@schema@".lock_scope(p_scope_id, p_epoch, false);
    v_is_ours boolean;
    v_state text;
    v_now timestamptz;
begin
    select m.store_id is not null, s.state into v_is_ours, v_state
    from (select) one
    left join "@schema@".store_metadata m on m.store_id = p_store_id
    left join "@schema@".scope s on s.scope_id = p_scope_id;
    if not v_is_ours or v_code is not null then
        return case when v_is_ours then v_code else 'ASDUR115' end;
    end if;
    if v_state is null then
        v_now := "@schema@".store_now();
        insert into "@schema@".scope (scope_id, created_at) values (p_scope_id, v_now) on conflict do nothing;
        if found then
            insert into "@schema@".scope_history (scope_id, generation, event, actor, at)
            values (p_scope_id, 1, 'created', session_user::text, v_now);
        end if;
        -- Else somebody else created it meanwhile; the lock that we hold has kept it active.
        return null;
    end if;
    if v_state = 'disabled' then
        return 'ASDUR107';
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from "@schema@".scope s where s.scope_id = p_scope_id for share;
    end if;
    return null;
end $$;
