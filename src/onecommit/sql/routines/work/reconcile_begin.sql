-- Guarantee: this command alone asks about the newest unresolved permit of the Work until its lease ends (started, or
-- resumed: it was begun before and its lease has ended). It changes no Work. A finished command: duplicate; refused
-- with 102, 108, 110, 111, 113, 116, or 118 while the lease of this or another command lasts. Also in a disabled scope.
-- For work_operator. Locks: schema, scope (shared), command, Work, dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".reconcile_begin(
    p_scope_id text, p_command_id text, p_work_id bigint, p_owner text, p_lease_us bigint, p_actor text, p_reason text,
    p_epoch bigint)
returns table (
    outcome text, code text, revision bigint, permit_id bigint, attempt integer, activity_id uuid, contract_name text,
    contract_version text, codec text, payload bytea, remaining integer, state text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_fingerprint constant bytea := "@schema@".command_fingerprint('reconcile', array[p_work_id::text, p_actor, p_reason]);
    v_command "@schema@".operator_command;
    v_work "@schema@".work;
    v_permit "@schema@".effect_permit;
    v_now timestamptz;
begin
    perform "@schema@".check_command(p_command_id, p_actor, p_reason);
    if coalesce(p_owner, '') = '' or p_lease_us is null or p_lease_us not between 1000000 and 3600000000 then
        raise exception 'owner, lease_us: a name, and a second to an hour' using errcode = '22023';
    end if;
    outcome := 'refused';
    code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    <<decided>>
    begin
        exit decided when code <> 'ASDUR107';
        select c.* into outcome, code, state, revision
        from "@schema@".replayed_command(p_scope_id, p_command_id, 'reconcile', v_fingerprint) c;
        exit decided when outcome is not null;
        v_work := "@schema@".lock_work(p_scope_id, p_work_id);
        v_now := "@schema@".store_now();
        select c.* into v_command from "@schema@".operator_command c where c.scope_id = p_scope_id and c.command_id = p_command_id;
        outcome := 'refused';
        revision := v_work.revision;
        state := v_work.state;
        code := case when v_command.lease_expires_at > v_now then 'ASDUR118'
                     else "@schema@".reconcile_code(v_work, p_command_id, p_epoch, v_now) end;
        exit decided when code is not null;
        v_permit := "@schema@".unresolved_permit(p_work_id, p_epoch);
        outcome := case when v_command.command_id is null then 'started' else 'resumed' end;
        insert into "@schema@".operator_command as c (
            scope_id, command_id, operation, fingerprint, work_id, state, owner, lease_expires_at, expected_revision,
            permit_id, actor, reason, created_at)
        values (p_scope_id, p_command_id, 'reconcile', v_fingerprint, p_work_id, 'started', p_owner,
                v_now + p_lease_us * interval '1 microsecond', v_work.revision, v_permit.permit_id, p_actor, p_reason, v_now)
        on conflict (scope_id, command_id) do update
        set owner = excluded.owner, lease_expires_at = excluded.lease_expires_at,
            expected_revision = excluded.expected_revision, permit_id = excluded.permit_id;
        perform "@schema@".write_work_history(
            v_work, 'reconcile_' || outcome, v_work.state, v_work.revision, p_epoch, v_now, v_work.code, p_command_id, p_actor);
        select p.payload into payload from "@schema@".work_payload p where p.work_id = p_work_id;
        if sha256(payload) is distinct from v_work.payload_sha256::bytea then
            raise exception 'the payload of Work % is not what was accepted', p_work_id using errcode = 'OC012',
                hint = 'The store is damaged: restore it, and rotate the epoch.';
        end if;
        permit_id := v_permit.permit_id;
        attempt := v_permit.attempt;
        activity_id := v_work.activity_id;
        contract_name := v_work.contract_name;
        contract_version := v_work.contract_version;
        codec := v_work.codec;
        remaining := "@schema@".count_unresolved(p_work_id, p_epoch);
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
