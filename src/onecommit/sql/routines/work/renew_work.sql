-- Guarantee: each lease of this scope that is still p_owner's lasts from now for its length, at most until its longest
-- time and the deadline (at_limit). A stale fence changes nothing; a row that is locked is skipped and said to be busy,
-- so that a handoff does not stall a heartbeat. For work_runtime. Locks: schema, scope (shared), Work (skipping),
-- dispatch. Raises 22023.
create or replace function "@schema@".renew_work(
    p_scope_id text, p_work_ids bigint[], p_attempts integer[], p_lease_generations bigint[],
    p_scope_generations bigint[], p_owner bigint, p_epoch bigint)
returns table (
    work_id bigint, outcome text, code text, lease_expires_at timestamptz, revision bigint,
    cancellation_requested boolean, at_limit boolean)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_code pg_catalog.text;
    v_now pg_catalog.timestamptz;
    v_locked bigint[];
    v_codes pg_catalog.text[];
    v_renewed bigint[];
begin
    if p_work_ids is null or cardinality(p_work_ids) not between 1 and 1000
        or cardinality(p_attempts) is distinct from cardinality(p_work_ids)
        or cardinality(p_lease_generations) is distinct from cardinality(p_work_ids)
        or cardinality(p_scope_generations) is distinct from cardinality(p_work_ids) then
        raise exception 'work_ids: must be 1 to 1000, with as many attempts, lease and scope generations'
            using errcode = '22023';
    end if;
    v_code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    if v_code is null then
        v_locked := array(
            select w.work_id from "@schema@".work w where w.work_id = any (p_work_ids) and w.scope_id = p_scope_id
            order by w.work_id for update skip locked);
    end if;
    v_now := "@schema@".store_now();
    v_codes := array(
        select coalesce(v_code, "@schema@".fence_code(
            w, a.attempt, a.lease_generation, a.scope_generation, p_owner, p_epoch, v_now))
        from unnest(p_work_ids, p_attempts, p_lease_generations, p_scope_generations)
            with ordinality a (work_id, attempt, lease_generation, scope_generation, n)
        left join lateral (select w.* from "@schema@".work w where w.work_id = a.work_id offset 0) w on true
        order by a.n);
    v_renewed := array(
        select a.work_id from unnest(p_work_ids, v_codes) a (work_id, code)
        where a.code is null and a.work_id = any (v_locked));
    update "@schema@".work w
    set lease_expires_at = greatest(w.lease_expires_at, least(
            v_now + w.lease_us * interval '1 microsecond',
            w.lease_started_at + w.max_lease_us * interval '1 microsecond', w.deadline))
    where w.work_id = any (v_renewed);
    update "@schema@".dispatch d
    set discover_at = (select w.lease_expires_at from "@schema@".work w where w.work_id = d.work_id)
    where d.work_id = any (v_renewed);
    return query
        select a.work_id,
               case when a.code is not null then 'stale' when a.work_id = any (v_locked) then 'renewed' else 'busy' end,
               a.code, w.lease_expires_at, w.revision, w.cancel_requested_at is not null,
               w.lease_expires_at >= least(w.lease_started_at + w.max_lease_us * interval '1 microsecond', w.deadline)
        from unnest(p_work_ids, v_codes) with ordinality a (work_id, code, n)
        left join lateral (
            select w.* from "@schema@".work w where w.work_id = a.work_id and a.code is null offset 0) w on true
        order by a.n;
    perform "@schema@".leave_scope();
end $$;
