-- Guarantee: a cancelled job runs no further attempt, and a running attempt of it can no longer complete; its worker is
-- told. Each answer is the truth at commit: cancelled, already_finished, not_found.
-- For operator. READ COMMITTED. Locks: schema (shared), attempts in id order, scheduled rows, completion keys and lease
-- rows in the order of a batch; then side rows, and dependant rows with all that depend on them, each in order. Raises
-- OC004, OC006, 22023, 40001.
create or replace function "@schema@".cancel_jobs(p_job_ids bigint[], p_actor text, p_reason text, p_epoch bigint)
returns table (job_id bigint, result text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
declare
    v_jobs constant bigint[] := array(select distinct j from unnest(p_job_ids) j where j is not null order by j);
    v_cancelled bigint[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'cancel_jobs needs READ COMMITTED' using errcode = 'OC006';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".record_action('cancel_jobs', array_to_string(p_job_ids, ','), p_actor, p_reason);
    for v_turn in 1..10 loop
        v_cancelled := "@schema@".try_cancel(v_jobs);
        exit when v_cancelled is not null;
    end loop;
    if v_cancelled is null then
        raise exception 'the jobs moved on again and again while they were cancelled' using errcode = '40001',
            hint = 'Retry the transaction.';
    end if;
    return query
        select j, case when j = any (v_cancelled) then 'cancelled' else "@schema@".finished_or_unknown(j) end from unnest(v_jobs) j;
    perform pg_notify('@schema@', 'c');
end $$;
