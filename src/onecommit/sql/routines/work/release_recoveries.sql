-- Guarantee: release_recovery for the oldest p_limit items of one contract (nulls: any) in the scope, each decided and
-- recorded under the id p_command_id:work_id (released); or only shown (preview). The same command again: its rows, as
-- duplicate. One row with refused and 102, 107, 108 or 113 for all. For work_operator. Locks: schema, scope (shared),
-- command, Work, dispatch, permit. Raises 22023, OC012, which undoes all.
create or replace function "@schema@".release_recoveries(
    p_scope_id text, p_contract_name text, p_contract_version text, p_limit integer, p_preview boolean,
    p_command_id text, p_actor text, p_reason text, p_epoch bigint)
returns table (work_id bigint, outcome text, code text, state text, revision bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_fingerprint constant bytea := "@schema@".command_fingerprint('release_recoveries', array[
        p_contract_name, p_contract_version, p_limit::text, p_actor, p_reason]);
    v_id bigint;
    v_work "@schema@".work;
    v_now timestamptz;
begin
    perform "@schema@".check_command(p_command_id, p_actor, p_reason);
    if p_limit is null or p_limit not between 1 and 1000 or p_preview is null then
        raise exception 'limit, preview: 1 to 1000, and true or false' using errcode = '22023';
    end if;
    if length(p_command_id) > 180 then
        raise exception 'command_id: must be at most 180 long, for the work ids behind it' using errcode = '22023';
    end if;
    outcome := 'refused';
    code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    <<decided>>
    begin
        exit decided when code is not null;
        select c.outcome, c.code into outcome, code
        from "@schema@".replayed_command(p_scope_id, p_command_id, 'release_recoveries', v_fingerprint) c;
        if outcome = 'duplicate' then
            return query
                select c.work_id, 'duplicate', c.code, c.to_state, c.revision from "@schema@".operator_command c
                where c.scope_id = p_scope_id and c.operation = 'release_recoveries.item'
                  and c.command_id = p_command_id || ':' || c.work_id
                order by c.work_id;
        end if;
        exit decided when outcome is not null;
        for v_id in
            select w.work_id from "@schema@".dispatch d join "@schema@".work w on w.work_id = d.work_id
            where d.scope_id = p_scope_id and d.state = 'suspended' and w.code = 'runtime_epoch_mismatch'
              and (p_contract_name is null or d.contract_name = p_contract_name)
              and (p_contract_version is null or d.contract_version = p_contract_version)
            order by w.work_id limit p_limit
        loop
            if p_preview then
                return query
                    select w.work_id, 'preview', w.code, w.state::text, w.revision from "@schema@".work w where w.work_id = v_id;
                continue;
            end if;
            v_work := "@schema@".lock_work(p_scope_id, v_id);
            v_now := "@schema@".store_now();
            if v_work.code is distinct from 'runtime_epoch_mismatch' or v_work.terminal_at is not null then
                continue;
            end if;
            perform "@schema@".release_work(v_work, p_command_id || ':' || v_id, p_actor, p_epoch, v_now);
            return query
                select v_id, 'released', r.* from "@schema@".record_command(
                    p_scope_id, p_command_id || ':' || v_id, 'release_recoveries.item', v_fingerprint, v_id, 'released',
                    p_actor, p_reason, v_now) r;
        end loop;
        if not p_preview then
            perform "@schema@".record_command(
                p_scope_id, p_command_id, 'release_recoveries', v_fingerprint, null, 'released', p_actor, p_reason,
                "@schema@".store_now());
        end if;
    end decided;
    perform "@schema@".leave_scope();
    if outcome = 'refused' then
        return next;
    end if;
end $$;
