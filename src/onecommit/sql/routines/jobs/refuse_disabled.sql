-- Raises OC003 if the attempt's queue is not enabled for caller-owned completion. p_lane is null for a lease. Internal.
create or replace function "@schema@".refuse_disabled(p_job_id bigint, p_lane smallint) returns void
language plpgsql stable as $$
begin
    if not exists (
        select from "@schema@".caller_owned_queue e where e.queue = coalesce(
            (select l.queue from "@schema@".lane l where l.lane = p_lane),
            (select l.queue from "@schema@".lease l where l.job_id = p_job_id))) then
        raise exception 'caller-owned completion is not enabled for the queue' using errcode = 'OC003',
            hint = 'Every live worker of the queue must advertise caller_owned_v1; finalization_status() names those that do not.';
    end if;
end $$;
