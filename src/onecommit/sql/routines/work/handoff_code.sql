-- Why this fence is no admitted invocation that may be handed over at p_now: null, or 111, 110, 105; 116 if its invocation
-- was not admitted or the Work was asked to stop. Internal, under the row locks of Work and permit.
create or replace function "@schema@".handoff_code(
    p_work "@schema@".work, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint, p_owner bigint,
    p_epoch bigint, p_now timestamptz) returns text
language sql stable as $$
    select coalesce(
        "@schema@".fence_code(p_work, p_attempt, p_lease_generation, p_scope_generation, p_owner, p_epoch, p_now),
        case when p_work.state <> 'effect_permitted' or p_work.cancel_requested_at is not null or not exists (
            select from "@schema@".effect_permit p
            where p.work_id = p_work.work_id and p.attempt = p_work.attempt
              and p.lease_generation = p_work.lease_generation and p.outcome = 'granted'
              and p.invocation_admitted_at is not null) then 'ASDUR116' end)
$$;
