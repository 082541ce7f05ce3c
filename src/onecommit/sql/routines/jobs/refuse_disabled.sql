-- Raises OC003 if the attempt's queue is not enabled for caller-owned completion. p_lane is null for a lease. Internal.
create or replace function "@schema@".refuse_disabled(p_job_id bigint, p_lane smallint) returns void
language plpgsql stable as $$
declare
    v_queue text := coalesce((select l.queue from "@schema@".lane l where l.lane = p_lane),
        (select l.queue from "@schema@".lease l where l.job_id = p_job_id));
begin
    if exists (select from "@schema@".caller_owned_queue e where e.queue = v_queue and e.disabled_at is not null) then
        raise exception 'caller-owned completion was disabled for the queue by an operator' using errcode = 'OC003',
            hint = 'allow_caller_owned() lifts that; operator_action says who disabled it and why.';
    elsif not exists (select from "@schema@".caller_owned_queue e where e.queue = v_queue) then
        raise exception 'caller-owned completion is not enabled for the queue' using errcode = 'OC003',
            hint = 'Every live worker of the queue must advertise caller_owned_v1; finalization_status() names those that do not.';
    end if;
end $$;
