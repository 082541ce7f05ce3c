-- What both identities of a request lead to in its scope: nothing (null), the same request again (duplicate), or another
-- (conflict: another fingerprint, or two items of Work). Internal, under the scope's lock and context.
create or replace function "@schema@".find_acceptance(
    p_scope_id text, p_command_id text, p_idempotency_key text, p_fingerprint_schema smallint, p_fingerprint bytea,
    out outcome text, out work "@schema@".work)
language plpgsql stable as $$
declare
    v_other "@schema@".work;
begin
    select w.* into work from "@schema@".work w where w.scope_id = p_scope_id and w.command_id = p_command_id;
    select w.* into v_other from "@schema@".work w
    where w.scope_id = p_scope_id and w.idempotency_key = p_idempotency_key;
    if work.work_id is null then
        work := v_other;
    end if;
    outcome := case
        when work.work_id is null then null
        when v_other.work_id <> work.work_id then 'conflict'
        when (work.fingerprint_schema, work.fingerprint) = (p_fingerprint_schema, p_fingerprint) then 'duplicate'
        else 'conflict'
    end;
end $$;
