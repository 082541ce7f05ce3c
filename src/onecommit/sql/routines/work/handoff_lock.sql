-- Guarantee: this is the admitted invocation that holds the Work, and the rows of Work, dispatch and permits stay
-- locked until the caller's transaction ends; nothing is written. Refused, the transaction usable, with its code: 105,
-- 107, 108, 110, 111, 113, 114, 115, 116. unbounded: which of the caller's time limits are not set. For work_acceptor.
-- Locks: schema, scope (shared), Work, dispatch, permit. Raises OC002 (savepoint), OC006 (isolation), OC012.
create or replace function "@schema@".handoff_lock(
    p_scope_id text, p_work_id bigint, p_attempt integer, p_lease_generation bigint, p_scope_generation bigint,
    p_owner bigint, p_store_id uuid, p_epoch bigint)
returns table (outcome text, code text, unbounded text[])
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_work "@schema@".work;
begin
    outcome := 'refused';
    code := "@schema@".enter_handoff(p_scope_id, p_scope_generation, p_store_id, p_epoch);
    <<decided>>
    begin
        exit decided when code is not null;
        v_work := "@schema@".lock_work(p_scope_id, p_work_id);
        if v_work.work_id is null then
            code := 'ASDUR111';
            exit decided;
        end if;
        -- A new statement: the one that locks still sees who locked before. Inside any subtransaction, released or not,
        -- the lock carries that subtransaction's id, and could be rolled back under the callback's writes.
        if (select w.xmax from "@schema@".work w where w.work_id = p_work_id) <> pg_current_xact_id()::xid then
            raise exception 'handoff was called inside a savepoint' using errcode = 'OC002',
                hint = 'Call it at the top level of the transaction: outside begin_nested(), nested atomic() and '
                    'nested conn.transaction() blocks.';
        end if;
        code := "@schema@".handoff_code(v_work, p_attempt, p_lease_generation, p_scope_generation, p_owner, p_epoch,
            "@schema@".store_now());
        exit decided when code is not null;
        outcome := 'held';
        unbounded := array(
            select s.name from unnest(array['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']) s (name)
            where current_setting(s.name) = '0');
    end decided;
    perform "@schema@".leave_scope();
    return next;
end $$;
