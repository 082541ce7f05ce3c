-- Guarantee: Work that its claimer cannot prepare (no such contract, codec or readable payload) waits for an operator;
-- no permit was granted for the attempt. For work_runtime. Locks: schema, scope (shared), Work, dispatch.
create or replace function "@schema@".suspend_contract(
    p_scope_id text, p_work_id bigint, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint,
    p_owner bigint, p_epoch bigint)
returns table (outcome text, code text, state text, revision bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_work "@schema@".work;
    v_now pg_catalog.timestamptz;
begin
    outcome := 'refused';
    code := "@schema@".enter_scope(p_scope_id, p_scope_generation, p_epoch);
    if code is null then
        select w.* into v_work from "@schema@".work w where w.work_id = p_work_id and w.scope_id = p_scope_id for update;
        v_now := "@schema@".store_now();
        code := "@schema@".fence_code(v_work, p_attempt, p_lease_generation, p_scope_generation, p_owner, p_epoch, v_now);
    end if;
    if code is null and v_work.state <> 'leased' then
        code := 'ASDUR116';
    end if;
    if code is null then
        outcome := 'suspended';
        code := 'ASDUR109';
        perform "@schema@".move_work(
            v_work, row('suspended_contract_unavailable', code, null, null, null)::"@schema@".work_end, 'contract_unavailable',
            p_epoch, v_now);
    end if;
    if v_work.work_id is not null then
        select w.state, w.revision into state, revision from "@schema@".work w where w.work_id = p_work_id;
    end if;
    perform "@schema@".leave_scope();
    return next;
end $$;
