-- Guarantee: what is known now of this permit is recorded, and the Work is decided by it: applied makes a success with
-- its result; not_applied clears this permit alone, and the last one lets the Work be tried again, unless it was
-- canceled or its attempts are over. Internal, under the locks of lock_work.
create or replace function "@schema@".apply_evidence(
    p_work "@schema@".work, p_permit_id bigint, p_evidence text, p_result bytea, p_result_codec text, p_event text,
    p_command_id text, p_actor text, p_epoch bigint, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_applied constant boolean := p_evidence = 'applied';
    v_end "@schema@".work_end;
begin
    update "@schema@".effect_permit p
    set outcome = case when v_applied then 'known_succeeded' else 'proven_no_effect' end, closed_at = p_now
    where p.permit_id = p_permit_id;
    update "@schema@".work w set epoch = p_epoch where w.work_id = p_work.work_id and w.epoch <> p_epoch;
    if v_applied then
        insert into "@schema@".work_result (work_id, scope_id, codec, sha256, result)
        values (p_work.work_id, p_work.scope_id, p_result_codec, sha256(p_result), p_result);
    else
        select n.eligible_at, n.closed into v_end.eligible_at, v_end.closed from "@schema@".next_attempt(p_work, p_now) n;
    end if;
    v_end.state := "@schema@".decide_end(
        p_work.safety, case when v_applied then 'succeeded' else 'retry_before_effect' end,
        "@schema@".has_unresolved(p_work.work_id, p_epoch), p_work.cancel_requested_at is not null, v_end.closed);
    v_end.code := "@schema@".end_code(v_end.state, v_end.closed, p_work.plan_version is not null, null);
    perform "@schema@".move_work(p_work, v_end, p_event || '_' || p_evidence, p_epoch, p_now, p_command_id, p_actor);
end $$;
