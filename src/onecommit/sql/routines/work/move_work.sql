-- Guarantee: Work stands in p_end.state at the next revision without a lease, its dispatch says when to look again, and
-- one history row tells it; a terminal state and its history row are one fact. p_permit_id: the permit that has the
-- outcome p_outcome by it. Internal, for every move but those of a live attempt. The caller holds the Work's row. Always
-- true, so that hot paths can assign it. Locks: dispatch, permit. Raises OC012.
create or replace function "@schema@".move_work(
    p_work "@schema@".work, p_end "@schema@".work_end, p_event text, p_epoch bigint, p_now timestamptz,
    p_command_id text default null, p_actor text default null,
    p_digest bytea default null, p_permit_id bigint default null, p_outcome text default null) returns boolean
language plpgsql as $$
declare
    v_terminal constant boolean := p_end.state in
        ('succeeded', 'succeeded_after_cancel_requested', 'failed', 'canceled_before_effect');
    v_waits constant boolean := p_end.state in ('pending', 'retry_wait');
    -- A witness belongs to an execution policy. Before its cutoff only a plan can be over, for want of a slot: without one
    -- p_end.closed says that no attempt follows by itself, and an operator may grant one at once.
    v_closed constant pg_catalog.text := case when p_work.plan_version is not null then coalesce(
        "@schema@".admission_closed(p_work, p_now),
        case when p_work.offsets_us is not null then p_end.closed end) end;
begin
    update "@schema@".work w
    set state = p_end.state, revision = w.revision + 1, code = p_end.code,
        eligible_at = coalesce(p_end.eligible_at, w.eligible_at),
        lease_owner = null, lease_request = null, lease_started_at = null, lease_expires_at = null,
        cancel_requested_at = coalesce(w.cancel_requested_at, case when p_event in ('cancel', 'disable') then p_now end),
        execution_admission_closed_at = coalesce(w.execution_admission_closed_at, case when v_closed is not null then p_now end),
        execution_admission_closed_reason = coalesce(w.execution_admission_closed_reason, v_closed),
        execution_deadline_reached_at = coalesce(w.execution_deadline_reached_at, case when p_now >= w.deadline then p_now end),
        terminal_at = case when v_terminal then p_now end
    where w.work_id = p_work.work_id;
    update "@schema@".dispatch d
    set state = case when v_terminal then 'terminal' when v_waits then 'available' else 'suspended' end,
        due_at = coalesce(p_end.eligible_at, d.due_at),
        discover_at = case
            when v_waits then least(coalesce(p_end.eligible_at, d.due_at), "@schema@".work_cutoff(p_work)) else p_now end,
        expected_revision = p_work.revision + 1
    where d.work_id = p_work.work_id;
    if not found then
        perform "@schema@".lock_dispatch(p_work.work_id);  -- raises
    end if;
    if p_permit_id is not null then
        update "@schema@".effect_permit p set outcome = p_outcome, closed_at = p_now where p.permit_id = p_permit_id;
    end if;
    return "@schema@".write_work_history(
        p_work, p_event, p_end.state, p_work.revision + 1, p_epoch, p_now, p_end.code, p_command_id, p_actor, p_digest,
        p_end.application_code);
end $$;
