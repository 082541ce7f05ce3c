-- Guarantee: those of the jobs that wait or run are cancelled, and what hangs on them is released; they are returned. Null
-- when one of them moved on meanwhile: then nothing was done and no lock is held. So each kind of lock is taken for all
-- jobs at once, and nobody is waited for with a later kind in hand. Internal, for cancel_jobs.
-- Locks: attempts in id order, scheduled rows, completion keys and lease rows in the order of a batch; then side rows, and
-- the blocked with all that depends on any of the jobs, each in order.
create or replace function "@schema@".try_cancel(p_job_ids bigint[]) returns bigint[]
language plpgsql as $$
declare
    v_blocked constant bigint[] := array(select d.job_id from "@schema@".dependant d where d.job_id = any (p_job_ids));
    v_tail constant bigint := pg_sequence_last_value('"@schema@".tail_fence'::regclass);
    v_open record;
    v_cancelled bigint[] := '{}';
    v_outcomes text[];
    v_taken "@schema@".dependant[];
begin
    for v_open in
        select a.* from "@schema@".lock_attempts(array(select unnest(p_job_ids) except select unnest(v_blocked))) a
        order by a.lane, a.seq, a.job_id
    loop
        if v_open.run_lease is null and "@schema@".cancel_scheduled(v_open.job_id) is not null or "@schema@".cancel_attempt(v_open.job_id,
            v_open.leased, v_open.chapter, v_open.lane, v_open.seq, v_open.run_lease, v_open.claimed, v_tail) then
            v_cancelled := v_cancelled || v_open.job_id;
        elsif "@schema@".is_unfinished(v_open.job_id) then
            raise exception 'a job moved on while it was cancelled' using errcode = '40001', hint = 'Retry the transaction.';
        end if;
    end loop;
    perform "@schema@".release_side(v_cancelled);
    v_cancelled := v_cancelled || v_blocked;
    if pg_sequence_last_value('"@schema@".dependant_mark'::regclass) > 0 and v_cancelled <> '{}' then
        v_outcomes := array_fill('cancelled'::text, array[cardinality(v_cancelled)]);
        perform "@schema@".lock_dependants(v_cancelled, v_outcomes, v_blocked, true);
        with taken as (
            delete from "@schema@".dependant d where d.job_id = any (v_blocked) returning d as job
        )
        select coalesce(array_agg(t.job order by (t.job).job_id), '{}') into v_taken from taken t;
        if cardinality(v_taken) < cardinality(v_blocked) then
            raise exception 'a job is blocked no more' using errcode = '40001', hint = 'Retry the transaction.';
        end if;
        perform "@schema@".cancel_dependants(v_taken, null);
        -- Nothing is waited for any more: a dependant that came after the locks is left to the leader.
        perform "@schema@".decide_dependants(v_cancelled, v_outcomes, array_fill(null::text, array[cardinality(v_cancelled)]), false);
    end if;
    return v_cancelled;
exception when serialization_failure then
    return null;
end $$;
