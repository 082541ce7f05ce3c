-- Work without payloads, newest id first, below p_before; nulls stand for any scope, state, contract. p_needs_operator:
-- only what waits for one. For reader, work_operator. Read-only. Raises 22023.
create or replace function "@schema@".list_work(
    p_scope_id text, p_states text[], p_needs_operator boolean, p_contract_name text, p_limit integer, p_before bigint)
returns setof "@schema@".work_view
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_ids bigint[];
begin
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception 'limit: must be 1 to 1000' using errcode = '22023';
    end if;
    if p_needs_operator then
        -- By their own index, however much Work has ended.
        v_ids := array(
            select d.work_id from "@schema@".dispatch d join "@schema@".work w on w.work_id = d.work_id
            where d.state = 'suspended' and (p_scope_id is null or d.scope_id = p_scope_id)
              and (p_contract_name is null or d.contract_name = p_contract_name)
              and (p_before is null or d.work_id < p_before) and (p_states is null or w.state = any (p_states))
            order by d.work_id desc limit p_limit);
    else
        v_ids := array(
            select w.work_id from "@schema@".work w
            where (p_scope_id is null or w.scope_id = p_scope_id)
              and (p_contract_name is null or w.contract_name = p_contract_name)
              and (p_before is null or w.work_id < p_before) and (p_states is null or w.state = any (p_states))
            order by w.work_id desc limit p_limit);
    end if;
    return query select v.* from "@schema@".work_views(v_ids) v;
end $$;
