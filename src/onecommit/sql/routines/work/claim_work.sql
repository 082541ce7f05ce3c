-- Guarantee: of the items asked for in one scope, those that stand at the revision that discovery showed and are due
-- belong to p_owner, each under the next attempt and lease generation; of concurrent claims one wins. What lost its
-- lease, its time or its epoch is decided instead (moved). The same p_owner and p_request get the same answer again.
-- For work_runtime. Locks: schema, scope (shared), request, Work (skipping), dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".claim_work(
    p_scope_id text, p_work_ids bigint[], p_revisions bigint[], p_owner bigint, p_request bigint, p_epoch bigint)
returns table (
    work_id bigint, outcome text, code text, activity_id uuid, command_id text, contract_name text, contract_version text,
    exit_aware boolean, codec text, payload bytea, safety text, attempt integer, lease_generation bigint,
    scope_generation bigint, revision bigint, accepted_at timestamptz, deadline timestamptz, claimed_at timestamptz,
    lease_expires_at timestamptz, lease_us bigint, renewal_us bigint)
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_code pg_catalog.text;
    v_now pg_catalog.timestamptz;
    v_locked bigint[];
    v_verdicts pg_catalog.text[];
    v_done boolean;
begin
    if cardinality(p_work_ids) is distinct from cardinality(p_revisions) or p_work_ids is null
        or cardinality(p_work_ids) not between 1 and 1000
        or (select count(distinct i.work_id) from unnest(p_work_ids) i (work_id)) <> cardinality(p_work_ids) then
        raise exception 'work_ids, revisions: must be 1 to 1000 pairs of distinct Work' using errcode = '22023';
    end if;
    if p_owner is null or p_request is null then
        raise exception 'owner, request: must not be null' using errcode = '22023';
    end if;
    v_code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    if v_code is null then
        -- A repeat waits here for the call whose answer was lost, and does not pass by the rows that it still holds.
        v_done := pg_advisory_xact_lock(
            "@schema@".lock_class('"@schema@".work'), "@schema@".scope_key(p_owner || '/' || p_request)) is not null;
        -- All Work rows before any dispatch row, in one order, so that claims of several items cannot block each other.
        v_locked := array(
            select w.work_id from "@schema@".work w where w.work_id = any (p_work_ids) and w.scope_id = p_scope_id
            order by w.work_id for update skip locked);
        v_now := "@schema@".store_now();
        v_verdicts := array(
            select case
                when w.work_id is null then 'lost'
                when w.state = 'leased' and w.lease_owner = p_owner and w.lease_request = p_request
                    and w.epoch = p_epoch and v_now < w.lease_expires_at then 'held'
                when w.revision is distinct from a.revision then 'lost'
                when v.verdict = 'claim' and sha256(p.payload) is distinct from w.payload_sha256::bytea then 'corrupt'
                else v.verdict
            end
            from unnest(p_work_ids, p_revisions) with ordinality a (work_id, revision, n)
            -- Item by item: a join of the tables would be planned as if the scope were small.
            left join lateral (
                select w.* from "@schema@".work w where w.work_id = a.work_id and a.work_id = any (v_locked) offset 0) w on true
            left join lateral (
                select p.payload from "@schema@".work_payload p where p.work_id = w.work_id offset 0) p on true
            cross join lateral "@schema@".claim_verdict(w, p_epoch, v_now) v (verdict)
            order by a.n);
        if 'claim' = any (v_verdicts) then
            v_done := "@schema@".lease_work(
                array(select a.work_id from unnest(p_work_ids, v_verdicts) a (work_id, verdict) where a.verdict = 'claim'),
                p_owner, p_request, p_epoch, v_now);
        end if;
        if not v_verdicts <@ array['claim', 'held', 'lost'] then
            perform "@schema@".recover_work(w, a.verdict, p_epoch, v_now)
            from unnest(p_work_ids, v_verdicts) a (work_id, verdict)
            cross join lateral (select w.* from "@schema@".work w where w.work_id = a.work_id offset 0) w
            where a.verdict not in ('claim', 'held', 'lost');
        end if;
        return query
            select a.work_id,
                   case when a.verdict in ('claim', 'held') then 'claimed' when a.verdict = 'lost' then 'lost' else 'moved' end,
                   case when a.verdict = 'lost' then 'ASDUR104' when a.verdict not in ('claim', 'held') then w.code end,
                   w.activity_id, w.command_id::text, w.contract_name::text, w.contract_version::text, w.exit_aware,
                   w.codec::text, p.payload::bytea, w.safety, w.attempt, w.lease_generation, w.scope_generation, w.revision,
                   w.accepted_at, w.deadline, w.lease_started_at, w.lease_expires_at, w.lease_us, w.renewal_us
            from unnest(p_work_ids, v_verdicts) with ordinality a (work_id, verdict, n)
            left join lateral (
                select w.* from "@schema@".work w where w.work_id = a.work_id and a.verdict <> 'lost' offset 0) w on true
            left join lateral (
                select p.payload from "@schema@".work_payload p
                where p.work_id = w.work_id and a.verdict in ('claim', 'held') offset 0) p on true
            order by a.n;
    else
        return query
            select a.work_id, 'lost', v_code, null::uuid, null, null, null, null::boolean, null, null::bytea, null,
                   null::integer, null::bigint, null::bigint, null::bigint, null::timestamptz, null::timestamptz,
                   null::timestamptz, null::timestamptz, null::bigint, null::bigint
            from unnest(p_work_ids) a (work_id);
    end if;
    v_done := "@schema@".leave_scope();
end $$;
