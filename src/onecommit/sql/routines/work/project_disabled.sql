-- Guarantee: every unfinished Work of the scope stands as decide_end says for disable, without a lease, its permits
-- closed, its dispatch and one history row with it; the answer is how many. A few statements for all: 10,000 items take
-- a second or two. Internal; the caller holds the scope exclusively. Raises OC012 if a count does not match.
create or replace function "@schema@".project_disabled(
    p_scope_id text, p_command_id text, p_actor text, p_epoch bigint, p_now timestamptz) returns bigint
language plpgsql as $$
declare
    v_ids constant bigint[] := array(
        select w.work_id from "@schema@".work w where w.scope_id = p_scope_id and w.terminal_at is null
        order by w.work_id for update);
    v_unfinished constant bigint := (
        select count(*) from "@schema@".dispatch d where d.scope_id = p_scope_id and d.state <> 'terminal');
    v_moved bigint[];
    v_states text[];
    v_owners bigint[];
    v_dispatched bigint;
    v_written bigint;
begin
    with moved as (
        update "@schema@".work w
        set state = e.state, code = "@schema@".end_code(e.state, null, w.plan_version is not null, null),
            revision = w.revision + 1,
            lease_owner = null, lease_request = null, lease_started_at = null, lease_expires_at = null,
            cancel_requested_at = coalesce(w.cancel_requested_at, p_now),
            execution_admission_closed_at = coalesce(w.execution_admission_closed_at, case when e.closed is not null then p_now end),
            execution_admission_closed_reason = coalesce(w.execution_admission_closed_reason, e.closed),
            execution_deadline_reached_at = coalesce(w.execution_deadline_reached_at, case when p_now >= w.deadline then p_now end),
            terminal_at = case when e.state = 'canceled_before_effect' then p_now end
        from "@schema@".work o
        cross join lateral (
            select "@schema@".decide_end(o.safety, 'disable', "@schema@".has_unresolved(o.work_id, p_epoch), true, null) as state,
                   "@schema@".admission_closed(o, p_now) as closed
        ) e
        where w.work_id = any (v_ids) and o.work_id = w.work_id
        returning w.work_id, o.state as from_state, o.lease_owner
    )
    select array_agg(m.work_id), array_agg(m.from_state), array_agg(m.lease_owner) into v_moved, v_states, v_owners
    from moved m;
    update "@schema@".dispatch d
    set state = case when w.terminal_at is not null then 'terminal' else 'suspended' end,
        discover_at = p_now, expected_revision = w.revision
    from "@schema@".work w
    where d.work_id = any (v_ids) and d.state <> 'terminal' and w.work_id = d.work_id;
    get diagnostics v_dispatched = row_count;
    update "@schema@".effect_permit p
    set outcome = case
            when "@schema@".may_have_had_effect(p.outcome, p.invocation_admitted_at, p.epoch, p_epoch) then 'ambiguous'
            else 'proven_no_effect' end,
        closed_at = p_now
    where p.work_id = any (v_ids) and p.outcome = 'granted';
    insert into "@schema@".work_history (
        work_id, scope_id, revision, event, from_state, to_state, attempt, lease_generation, scope_generation, epoch,
        lease_owner, command_id, actor, code, at)
    select w.work_id, w.scope_id, w.revision, 'disable', m.from_state, w.state, w.attempt, w.lease_generation,
           w.scope_generation, p_epoch, m.lease_owner, p_command_id, p_actor, w.code, p_now
    from unnest(v_moved, v_states, v_owners) m (work_id, from_state, lease_owner)
    join "@schema@".work w on w.work_id = m.work_id;
    get diagnostics v_written = row_count;
    if coalesce(cardinality(v_moved), 0) <> cardinality(v_ids) or v_unfinished <> cardinality(v_ids)
        or v_dispatched <> cardinality(v_ids) or v_written <> cardinality(v_ids) then
        raise exception 'of % items of unfinished Work % have a dispatch row', cardinality(v_ids), v_dispatched
            using errcode = 'OC012', hint = 'The store is damaged: restore it, and rotate the epoch.';
    end if;
    return v_written;
end $$;
