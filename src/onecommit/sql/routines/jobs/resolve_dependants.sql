-- Guarantee: ends on record are decided, and so is every dependant whose parent's end was missed because both were
-- uncommitted at once. o_next: when to look again. Internal, for promote_jobs.
-- A dependant is looked at until every transaction that could have missed it has ended: those numbered below the horizon,
-- which is taken once the row is seen. A later closer sees the row.
-- Locks: parent_end rows (skip locked), those of decide_dependants; then dependant rows, waiting for none (skip locked).
create or replace function "@schema@".resolve_dependants(p_limit integer, out o_resolved integer, out o_next timestamptz)
language plpgsql as $$
declare
    v_now constant timestamptz := "@schema@".store_now();
    v_ends record;
    v_looked record;
begin
    o_resolved := 0;
    if pg_sequence_last_value('"@schema@".dependant_mark'::regclass) = 0 then
        return;
    end if;
    with due as (
        select e.job_id from "@schema@".parent_end e order by e.job_id limit p_limit for update skip locked
    ), taken as (
        delete from "@schema@".parent_end e using due where e.job_id = due.job_id returning e.*
    )
    select array_agg(t.job_id) as job_ids, array_agg(t.outcome) as outcomes, array_agg(t.code) as codes, count(*)::integer as n
    into v_ends from taken t;
    if v_ends.n > 0 then
        perform "@schema@".decide_dependants(v_ends.job_ids, v_ends.outcomes, v_ends.codes, true);
        o_resolved := v_ends.n;
    end if;
    -- Whether the horizon is passed is asked BEFORE the parent is looked at: a closer could commit between the two.
    select array_agg(d.job_id) as job_ids, array_agg(d.parent_id) as parents,
           array_agg(d.job_id) filter (where d.horizon <= pg_snapshot_xmin(pg_current_snapshot())) as seen_by_all
    into v_looked
    from (select * from "@schema@".dependant d where d.look_at <= v_now order by d.look_at limit p_limit for update skip locked) d;
    if v_looked.job_ids is not null then
        o_resolved := o_resolved + "@schema@".decide_missed(v_looked.parents);
        update "@schema@".dependant d
        set horizon = coalesce(d.horizon, pg_snapshot_xmax(pg_current_snapshot())),
            look_at = case when (d.job_id = any (v_looked.seen_by_all)) is not true
                then v_now + greatest(interval '2 seconds', least(interval '1 minute', (v_now - d.created_at) / 2)) end
        where d.job_id = any (v_looked.job_ids);
    end if;
    select least((select v_now from "@schema@".parent_end limit 1),
                 (select min(d.look_at) from "@schema@".dependant d where d.look_at is not null)) into o_next;
end $$;
