-- Guarantee: nothing of the Work starts any more. canceled: no effect can have happened; suspended: one may have, by the
-- class; requested: the admitted attempt still holds its lease and decides. Internal, under the locks of lock_work.
create or replace function "@schema@".settle_cancel(
    p_work "@schema@".work, p_command_id text, p_actor text, p_epoch bigint, p_now timestamptz) returns text
language plpgsql as $$
declare
    v_alive constant boolean := p_work.state in ('effect_permitted', 'cancel_pending') and p_work.epoch = p_epoch
        and p_now < p_work.lease_expires_at and "@schema@".is_admitted(p_work);
    v_end "@schema@".work_end;
begin
    if v_alive and p_work.state = 'effect_permitted' then
        update "@schema@".work w
        set state = 'cancel_pending', revision = w.revision + 1, cancel_requested_at = p_now
        where w.work_id = p_work.work_id;
        update "@schema@".dispatch d set expected_revision = p_work.revision + 1 where d.work_id = p_work.work_id;
        perform "@schema@".write_work_history(
            p_work, 'cancel_requested', 'cancel_pending', p_work.revision + 1, p_epoch, p_now, null, p_command_id, p_actor);
    end if;
    if v_alive then
        return 'requested';
    end if;
    if p_work.cancel_requested_at is not null and p_work.state <> 'cancel_pending' then
        return 'suspended';
    end if;
    v_end := "@schema@".end_attempt(p_work, "@schema@".see_permits(p_work, p_epoch), 'cancel', null, p_epoch, p_now, p_command_id, p_actor);
    return case v_end.state when 'canceled_before_effect' then 'canceled' else 'suspended' end;
end $$;
