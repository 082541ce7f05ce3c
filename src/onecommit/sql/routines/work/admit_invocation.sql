-- Guarantee: the provider is called at most once under a permit: the first caller is admitted, every other one refused,
-- also one that repeats a call whose answer was lost. After a cutoff nobody is, and the Work is decided.
-- For work_runtime. Locks: schema, scope (shared), Work, permit.
create or replace function "@schema@".admit_invocation(
    p_scope_id text, p_work_id bigint, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint,
    p_owner bigint, p_epoch bigint)
returns table (outcome text, code text, admitted_at timestamptz)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_work "@schema@".work;
    v_now pg_catalog.timestamptz;
    v_end "@schema@".work_end;
    v_left boolean;
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
        if v_work.state = 'effect_permitted' and "@schema@".admission_closed(v_work, v_now) is not null
            and not "@schema@".is_admitted(v_work) then
            v_end := "@schema@".end_attempt(v_work, "@schema@".see_permits(v_work, p_epoch), 'cutoff', null, p_epoch, v_now);
            code := v_end.code;
            exit decided;
        end if;
        update "@schema@".effect_permit p set invocation_admitted_at = v_now
        where p.work_id = p_work_id and p.attempt = p_attempt and p.lease_generation = p_lease_generation
          and p.outcome = 'granted' and p.invocation_admitted_at is null and v_work.state = 'effect_permitted';
        if found then
            outcome := 'admitted';
            admitted_at := v_now;
        else
            code := 'ASDUR116';
        end if;
    end decided;
    v_left := "@schema@".leave_scope();
    return next;
end $$;
