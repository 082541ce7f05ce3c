-- Guarantee: a cancelled job runs no further attempt, and a running attempt of it can no longer complete; its worker is
-- told. Each answer is the truth at commit: cancelled, already_finished, not_found.
-- For operator. READ COMMITTED. Locks: schema (shared), then job by job in id order: attempt, completion key or lease
-- row, scheduled row, side rows; at last dependant rows and all that depend on them, in id order. Raises OC004, OC006,
-- 22023, 40001.
create or replace function "@schema@".cancel_jobs(p_job_ids bigint[], p_actor text, p_reason text, p_epoch bigint)
returns table (job_id bigint, result text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    v_job bigint;
    v_blocked bigint[];
    v_locked boolean := false;
    v_cancelled bigint[] := '{}';
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'cancel_jobs needs READ COMMITTED' using errcode = 'OC006';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".record_action('cancel_jobs', array_to_string(p_job_ids, ','), p_actor, p_reason);
    -- Dependants last: who closes attempts takes their completion keys first and dependant rows afterwards.
    v_blocked := array(select d.job_id from "@schema@".dependant d where d.job_id = any (p_job_ids));
    for v_job in
        select j from (select distinct j from unnest(p_job_ids) j where j is not null) i (j)
        order by i.j = any (v_blocked), i.j
    loop
        if v_job = any (v_blocked) and not v_locked then
            -- With all that is released below.
            perform "@schema@".lock_dependants(v_cancelled || v_blocked,
                array_fill('cancelled'::text, array[cardinality(v_cancelled || v_blocked)]), v_blocked, true);
            v_locked := true;
        end if;
        job_id := v_job;
        result := null;
        -- A job that moves between its tables while we look is found at the next turn.
        for v_turn in 1..5 loop
            result := coalesce("@schema@".cancel_scheduled(v_job), "@schema@".cancel_attempt(v_job), "@schema@".cancel_blocked(v_job));
            exit when result is not null;
        end loop;
        if result is not null then
            v_cancelled := v_cancelled || v_job;
        end if;
        result := coalesce(result, "@schema@".finished_or_unknown(v_job));
        return next;
    end loop;
    perform "@schema@".release_dependants(v_cancelled, 'cancelled');
    perform pg_notify('@schema@', 'c');
end $$;
