-- Guarantee: of the Work of this scope and contract (nulls: any) that an older epoch left behind, at most p_limit items
-- are released as by release_recovery, each decided and recorded apart under the id p_command_id:work_id, all in this
-- transaction; with p_preview they are only shown. One row with a code, where the scope or the epoch refuse.
-- Work operator. Locks: schema, scope (shared), command, Work, dispatch, permit. Raises 22023, OC012.
create or replace function "@schema@".release_recoveries(
    p_scope_id text, p_contract_name text, p_contract_version text, p_limit integer, p_preview boolean,
    p_command_id text, p_actor text, p_reason text, p_epoch bigint)
returns table (work_id bigint, outcome text, code text, state text, revision bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_code text;
    v_left "@schema@".work[];
begin
    perform "@schema@".check_command(p_command_id, p_actor, p_reason);
    if p_limit is null or p_limit not between 1 and 1000 or p_preview is null or length(p_command_id) > 180 then
        raise exception 'limit, preview, command_id: 1 to 1000, true or false, at most 180 characters' using errcode = '22023';
    end if;
    v_code := "@schema@".enter_scope(p_scope_id, null, p_epoch);
    if v_code is null then
        v_left := array(
            select w from "@schema@".dispatch d join "@schema@".work w on w.work_id = d.work_id
            where d.scope_id = p_scope_id and d.state = 'suspended' and w.code = 'runtime_epoch_mismatch'
              and (p_contract_name is null or w.contract_name = p_contract_name)
              and (p_contract_version is null or w.contract_version = p_contract_version)
            order by w.work_id limit p_limit);
    end if;
    perform "@schema@".leave_scope();
    if v_code is not null then
        return query select null::bigint, 'refused', v_code, null::text, null::bigint;
    elsif p_preview then
        return query select l.work_id, 'preview', l.code, l.state, l.revision from unnest(v_left) l;
    else
        return query
            select l.work_id, r.outcome, r.code, r.state, r.revision
            from unnest(v_left) l cross join lateral "@schema@".release_recovery(
                p_scope_id, p_command_id || ':' || l.work_id, l.work_id, l.revision, p_actor, p_reason, p_epoch) r;
    end if;
end $$;
