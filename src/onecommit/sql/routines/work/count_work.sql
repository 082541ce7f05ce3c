-- How many unfinished items of Work stand in each state, by contract and, if p_by_scope, by scope, and since when the
-- oldest was accepted; the largest counts first. Ended Work is not counted, which would read it all. Nulls stand for any
-- scope and contract. For reader, work_operator. Read-only. Raises 22023.
create or replace function "@schema@".count_work(p_scope_id text, p_contract_name text, p_by_scope boolean, p_limit integer)
returns table (scope_id text, contract_name text, contract_version text, state text, items bigint, oldest_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if p_limit is null or p_limit not between 1 and 1000 then
        raise exception 'limit: must be 1 to 1000' using errcode = '22023';
    end if;
    return query
        select case when p_by_scope then w.scope_id::text end, w.contract_name::text, w.contract_version::text, w.state::text,
               count(*), min(w.accepted_at)
        from "@schema@".dispatch d join "@schema@".work w on w.work_id = d.work_id
        where d.state <> 'terminal' and (p_scope_id is null or d.scope_id = p_scope_id)
          and (p_contract_name is null or d.contract_name = p_contract_name)
        group by 1, 2, 3, 4 order by 5 desc, 1, 2, 3, 4 limit p_limit;
end $$;
