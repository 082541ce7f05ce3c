-- Guarantee: the jobs, which no table holds any more, are history that says cancelled, and hold no unique key. Internal.
-- p_code null: an operator's doing. Locks: unique_key rows in key order. Raises 40001.
create or replace function "@schema@".cancel_dependants(p_dependants "@schema@".dependant[], p_code text) returns void
language plpgsql as $$
declare
    v_chapter constant integer := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    v_slot constant smallint := "@schema@".ring_slot(v_chapter);
    v_keyed bigint[];
begin
    if cardinality(p_dependants) = 0 then
        return;
    end if;
    -- An attempt of history counts as used; these had none.
    with numbered as materialized (
        select nextval('"@schema@".lane_0_number'::regclass) as seq, d.* from unnest(p_dependants) d
    ), kept as (
        insert into "@schema@".ready (slot, lane, chapter, seq, job_id, created_at, run_lease, attempt, max_attempts, kind, args, options)
        select v_slot, 0, v_chapter, n.seq, n.job_id, n.created_at, 1, -1, n.max_attempts, n.kind, n.args,
               n.options || jsonb_build_object('_place', jsonb_build_object('queue', n.queue, 'priority', n.priority)) from numbered n
    )
    insert into "@schema@".completion (slot, lane, outcome, seq, finished_at, detail)
    select v_slot, 0, 'cancelled', n.seq, "@schema@".store_now(), case when p_code is not null then json_build_object('code', p_code) end
    from numbered n;
    if v_chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
        raise exception 'the chapter was reclaimed while this transaction wrote to it' using errcode = '40001',
            hint = 'Retry the transaction.';
    end if;
    v_keyed := array(select d.job_id from unnest(p_dependants) d where d.options ? 'unique');
    if v_keyed <> '{}' then
        perform "@schema@".release_side(v_keyed);
    end if;
end $$;
