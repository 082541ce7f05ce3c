-- One history row about Work as it was locked (p_work), and what it became. Always true, so that hot paths can assign
-- it. Internal.
create or replace function "@schema@".write_work_history(
    p_work "@schema@".work, p_event text, p_to_state text, p_revision bigint, p_epoch bigint, p_now timestamptz,
    p_code text default null, p_command_id text default null, p_actor text default null,
    p_digest bytea default null, p_application_code text default null) returns boolean
language plpgsql as $$
begin
    insert into "@schema@".work_history (
        work_id, scope_id, revision, event, from_state, to_state, attempt, lease_generation, scope_generation, epoch,
        lease_owner, command_id, actor, code, application_code, observation_sha256, at)
    values (p_work.work_id, p_work.scope_id, p_revision, p_event, p_work.state, p_to_state, p_work.attempt,
            p_work.lease_generation, p_work.scope_generation, p_epoch, p_work.lease_owner, p_command_id,
            coalesce(p_actor, session_user::text), p_code, p_application_code, p_digest, p_now);
    return true;
end $$;
