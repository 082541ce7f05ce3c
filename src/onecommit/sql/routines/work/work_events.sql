-- What happened to one item of Work, oldest first, quarantined observations included, without bytes. For reader,
-- work_operator. Read-only.
create or replace function "@schema@".work_events(p_work_id bigint)
returns table (
    history_id bigint, at timestamptz, event text, from_state text, to_state text, revision bigint, attempt integer,
    lease_generation bigint, lease_owner bigint, epoch bigint, command_id text, actor text, code text,
    application_code text, observation_sha256 bytea)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select h.history_id, h.at, h.event, h.from_state, h.to_state, h.revision, h.attempt, h.lease_generation,
               h.lease_owner, h.epoch, h.command_id::text, h.actor, h.code, h.application_code, h.observation_sha256::bytea
        from "@schema@".work_history h where h.work_id = p_work_id order by h.history_id;
end $$;
