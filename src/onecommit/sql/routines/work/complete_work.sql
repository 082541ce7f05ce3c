-- Guarantee: the end of the attempt that holds this exact fence and its permit is decided and recorded as one fact,
-- once; the same completion again answers replayed. A stale one changes nothing: what it says is kept aside
-- (quarantined). For work_runtime. Locks: schema, scope (shared), Work, dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".complete_work(
    p_scope_id text, p_work_id bigint, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint,
    p_owner bigint, p_event text, p_code text, p_result bytea, p_result_codec text, p_epoch bigint)
returns table (outcome text, code text, state text, revision bigint, eligible_at timestamptz)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_digest constant pg_catalog.bytea := "@schema@".completion_digest(p_event, p_code, p_result, p_result_codec);
    v_scope_code pg_catalog.text;
    v_work "@schema@".work;
    v_sight "@schema@".permit_sight;
    v_now pg_catalog.timestamptz;
    v_end "@schema@".work_end;
    v_problem pg_catalog.text;
    v_left boolean;
begin
    v_problem := case
        when num_nulls(p_attempt, p_lease_generation, p_scope_generation, p_owner) > 0
            then 'attempt, lease_generation, scope_generation, owner: must not be null'
        else "@schema@".completion_problem(p_event, p_code, p_result, p_result_codec)
    end;
    if v_problem is not null then
        raise exception '%', v_problem using errcode = '22023';
    end if;
    outcome := 'refused';
    v_scope_code := "@schema@".enter_scope(p_scope_id, p_scope_generation, p_epoch);
    <<decided>>
    begin
        code := v_scope_code;
        exit decided when code in ('ASDUR108', 'ASDUR113');
        select w.* into v_work from "@schema@".work w where w.work_id = p_work_id and w.scope_id = p_scope_id for update;
        v_now := "@schema@".store_now();
        state := v_work.state;
        revision := v_work.revision;
        eligible_at := v_work.eligible_at;
        code := coalesce(
            "@schema@".fence_code(v_work, p_attempt, p_lease_generation, p_scope_generation, p_owner, p_epoch, v_now),
            v_scope_code);
        exit decided when code = 'ASDUR111';
        if code is not null then
            code := coalesce(v_scope_code, code);
            outcome := "@schema@".quarantine(
                v_work, p_attempt, p_lease_generation, p_scope_generation, p_owner, p_event, v_digest, p_code, p_result,
                code, p_epoch, v_now);
            code := case when outcome = 'quarantined' then code end;
            exit decided;
        end if;
        v_sight := "@schema@".see_permits(v_work, p_epoch);
        if p_event = 'succeeded' and not v_sight.admitted then
            code := 'ASDUR116';
            exit decided;
        end if;
        if p_event = 'succeeded' then
            insert into "@schema@".work_result (work_id, scope_id, codec, sha256, result)
            values (p_work_id, p_scope_id, p_result_codec, sha256(p_result), p_result);
        end if;
        v_end := "@schema@".end_attempt(v_work, v_sight, p_event, p_code, p_epoch, v_now, p_digest => v_digest);
        outcome := 'completed';
        code := v_end.code;
        state := v_end.state;
        revision := v_work.revision + 1;
        eligible_at := coalesce(v_end.eligible_at, v_work.eligible_at);
    end decided;
    v_left := "@schema@".leave_scope();
    return next;
end $$;
