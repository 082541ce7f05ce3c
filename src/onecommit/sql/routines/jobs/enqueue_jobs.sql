-- Guarantee: the jobs exist if and only if the caller's transaction commits; any transaction, savepoints included.
-- created is null when no unique key took part; created[i] is false where job_ids[i] is the job that holds the key.
-- For producer. Locks: schema (shared), unique_key rows in key order, dependant rows, (lane, generation) shared.
-- Raises OC004, OC007, 22023 (names the field, never a value), 40001 (chapter reclaimed: retry).
create or replace function "@schema@".enqueue_jobs(p_queue text, p_kinds text[], p_args text[], p_options jsonb, p_epoch bigint,
    out job_ids bigint[], out created boolean[])
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    v_now timestamptz;
    v_args json[];
    v_option record;
begin
    -- Tested, not performed: an expression needs no executor.
    if not "@schema@".enter_runtime(p_epoch) then
        return;
    end if;
    v_args := "@schema@".check_payloads(p_kinds, p_args);
    v_now := "@schema@".store_now();
    if jsonb_typeof(p_options) = 'array' or p_options ?| '{unique,after}' then
        select e.job_ids, e.created into job_ids, created
        from "@schema@".enqueue_each(p_queue, p_kinds, v_args, p_options, v_now) e;
        return;
    end if;
    v_option := "@schema@".read_options(p_options, v_now);
    if v_option.o_run_at > v_now then
        job_ids := "@schema@".enqueue_later(p_queue, p_kinds, v_args, v_option.o_run_at, v_option.o_priority,
            v_option.o_max_attempts, v_option.o_stored, v_now);
    else
        job_ids := "@schema@".enqueue_ready(p_queue, p_kinds, v_args, v_option.o_priority, v_option.o_max_attempts,
            v_option.o_stored, v_now);
    end if;
end $$;
