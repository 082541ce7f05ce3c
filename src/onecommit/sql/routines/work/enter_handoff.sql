-- Guarantee: as enter_scope, for this store and generation. Internal. Locks: schema, scope (shared).
-- Raises OC006: another isolation than READ COMMITTED would look at what an old snapshot saw.
create or replace function "@schema@".enter_handoff(
    p_scope_id text, p_scope_generation bigint, p_store_id uuid, p_epoch bigint) returns text
language plpgsql as $$
declare
    v_code text;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a handoff needs READ COMMITTED' using errcode = 'OC006',
            hint = 'Run it in a READ COMMITTED transaction.';
    end if;
    v_code := "@schema@".enter_scope(p_scope_id, p_scope_generation, p_epoch);
    if not exists (select from "@schema@".store_metadata m where m.store_id = p_store_id) then
        return 'ASDUR115';
    end if;
    return v_code;
end $$;
