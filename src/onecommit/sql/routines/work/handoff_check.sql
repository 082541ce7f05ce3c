-- Guarantee: what handoff_lock found, in this transaction, holds at a later time too; nothing is written. Refused, the
-- transaction usable: as handoff_lock, and 116 without its lock.
-- For work_acceptor. Locks: schema, scope (shared). Raises OC006 (isolation).
create or replace function "@schema@".handoff_check(
    p_scope_id text, p_work_id bigint, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint,
    p_owner bigint, p_store_id uuid, p_epoch bigint)
returns table (outcome text, code text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_work "@schema@".work;
    v_xmax xid;
begin
    code := "@schema@".enter_handoff(p_scope_id, p_scope_generation, p_store_id, p_epoch);
    if code is null then
        select w.* into v_work from "@schema@".work w where w.work_id = p_work_id and w.scope_id = p_scope_id;
        select w.xmax into v_xmax from "@schema@".work w where w.work_id = p_work_id and w.scope_id = p_scope_id;
        code := "@schema@".handoff_code(v_work, p_attempt, p_lease_generation, p_scope_generation, p_owner, p_epoch,
            "@schema@".store_now());
        if code is null and v_xmax <> pg_current_xact_id()::xid then
            code := 'ASDUR116';
        end if;
    end if;
    outcome := case when code is null then 'held' else 'refused' end;
    perform "@schema@".leave_scope();
    return next;
end $$;
