-- Guarantee: one permit authorizes this exact attempt, lease, scope generation, epoch and activity, recorded before any
-- provider I/O; the same fence gets the same permit again. After a cutoff there is none, and the Work is decided.
-- For work_runtime. Locks: schema, scope (shared), Work, dispatch, permit. Raises OC012.
create or replace function "@schema@".acquire_permit(
    p_scope_id text, p_work_id bigint, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint,
    p_owner bigint, p_epoch bigint)
returns table (outcome text, code text, permit_id bigint, granted_at timestamptz)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_work "@schema@".work;
    v_now pg_catalog.timestamptz;
    v_end "@schema@".work_end;
    v_done boolean;
begin
    outcome := 'refused';
    code := "@schema@".enter_scope(p_scope_id, p_scope_generation, p_epoch);
    <<decided>>
    begin
        exit decided when code is not null;
        select w.* into v_work from "@schema@".work w where w.work_id = p_work_id and w.scope_id = p_scope_id for update;
        v_now := "@schema@".store_now();
        code := "@schema@".fence_code(v_work, p_attempt, p_lease_generation, p_scope_generation, p_owner, p_epoch, v_now);
        exit decided when code is not null;
        if v_work.state <> 'leased' then
            outcome := 'replayed';
            select p.permit_id, p.granted_at into permit_id, granted_at from "@schema@".effect_permit p
            where p.work_id = p_work_id and p.attempt = p_attempt and p.lease_generation = p_lease_generation;
            exit decided;
        end if;
        if "@schema@".admission_closed(v_work, v_now) is not null then
            v_end := "@schema@".end_attempt(v_work, "@schema@".see_permits(v_work, p_epoch), 'cutoff', null, p_epoch, v_now);
            code := v_end.code;
            exit decided;
        end if;
        outcome := 'granted';
        granted_at := v_now;
        update "@schema@".work w set state = 'effect_permitted', revision = w.revision + 1 where w.work_id = p_work_id;
        update "@schema@".dispatch d set expected_revision = v_work.revision + 1 where d.work_id = p_work_id;
        if not found then
            perform "@schema@".lock_dispatch(p_work_id);  -- raises
        end if;
        insert into "@schema@".effect_permit (
            work_id, scope_id, attempt, lease_generation, scope_generation, epoch, lease_owner, activity_id, granted_at)
        values (p_work_id, p_scope_id, p_attempt, p_lease_generation, p_scope_generation, p_epoch, p_owner,
                v_work.activity_id, v_now)
        returning effect_permit.permit_id into permit_id;
        v_done := "@schema@".write_work_history(
            v_work, 'permit_granted', 'effect_permitted', v_work.revision + 1, p_epoch, v_now);
    end decided;
    v_done := "@schema@".leave_scope();
    return next;
end $$;
