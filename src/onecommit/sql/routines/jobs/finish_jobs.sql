-- Guarantee: each attempt is closed once with its outcome, and the job's body moves to scheduled or dead_letter in the
-- same statement. A retry of the last attempt is a failure. Rows are returned only for losers, as by complete_jobs,
-- and with p_lock 'busy' also of an attempt that is no lease: a caller's commit may be in flight.
-- For executor. Locks: schema (shared), attempts (try, p_lock or leases), completion keys in order, side rows in key
-- order. Raises OC004, 22023, 40001 (a chapter was reclaimed meanwhile: repeat the call).
create or replace function "@schema@".finish_jobs(p_epoch bigint, p_chapters integer[], p_lanes smallint[], p_seqs bigint[],
    p_job_ids bigint[], p_run_leases bigint[], p_outcomes text[], p_delays_us bigint[], p_codes text[], p_details text[],
    p_lock boolean) returns setof "@schema@".closing_verdict
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
    if exists (select from unnest(p_outcomes) o where o is null or o not in ('retried', 'snoozed', 'failed', 'discarded', 'cancelled')) then
        raise exception 'outcomes: must be retried, snoozed, failed, discarded or cancelled' using errcode = '22023';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    return query select c.* from "@schema@".close_attempts(p_chapters, p_lanes, p_seqs, p_job_ids, p_run_leases,
        p_outcomes, p_delays_us, p_codes, p_details, coalesce(p_lock, false)) c;
end $$;
