-- Guarantee: what a stale completion says is kept once for each fence, event and digest, as evidence that changes nothing;
-- or it is the very completion that was recorded, told again (replayed). Of purged Work its digest alone is kept.
-- Internal, under the Work's row lock.
create or replace function "@schema@".quarantine(
    p_work "@schema@".work, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint, p_owner bigint,
    p_event text, p_digest bytea, p_code text, p_result bytea, p_refusal text, p_epoch bigint, p_now timestamptz)
returns text
language plpgsql as $$
begin
    if exists (
        select from "@schema@".work_history h
        where h.work_id = p_work.work_id and h.attempt = p_attempt and h.lease_generation = p_lease_generation
          and h.scope_generation = p_scope_generation and h.lease_owner = p_owner and h.epoch = p_epoch
          and h.event = p_event and h.observation_sha256 = p_digest) then
        return 'replayed';
    end if;
    insert into "@schema@".work_history (
        work_id, scope_id, revision, event, attempt, lease_generation, scope_generation, epoch, lease_owner, code,
        application_code, observation_sha256, observation, at)
    values (
        p_work.work_id, p_work.scope_id, p_work.revision, 'quarantined_' || p_event, p_attempt, p_lease_generation,
        p_scope_generation, p_epoch, p_owner, p_refusal,
        p_code, p_digest, case when p_work.purged_at is null then p_result end, p_now)
    on conflict do nothing;
    return 'quarantined';
end $$;
