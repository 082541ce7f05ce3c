-- Guarantee: the jobs, which no table holds any more, are dead letters and hold no unique key. Internal.
-- Locks: unique_key rows in key order.
create or replace function "@schema@".discard_dependants(p_dependants "@schema@".dependant[]) returns void
language plpgsql as $$
declare
    v_keyed bigint[];
begin
    if cardinality(p_dependants) = 0 then
        return;
    end if;
    insert into "@schema@".dead_letter (job_id, died_at, outcome, code, queue, priority, created_at, run_lease, attempt,
        max_attempts, kind, args, options)
    select d.job_id, "@schema@".store_now(), 'discarded', 'parent_failed', d.queue, d.priority, d.created_at, 1, 0,
           d.max_attempts, d.kind, d.args, d.options
    from unnest(p_dependants) d;
    v_keyed := array(select d.job_id from unnest(p_dependants) d where d.options ? 'unique');
    if v_keyed <> '{}' then
        perform "@schema@".release_side(v_keyed);
    end if;
end $$;
