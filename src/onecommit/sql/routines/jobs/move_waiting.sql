-- Guarantee: up to p_limit waiting rows of the lane that lie in the slot are closed as moved and wait again in the
-- current chapter of (p_queue, p_priority). Returns how many. Internal. Locks: lane (try): no claim can be in flight.
create or replace function "@schema@".move_waiting(p_lane smallint, p_queue text, p_priority integer, p_slot smallint, p_limit integer)
returns integer
language plpgsql as $$
declare
    v_state record;
    v_rows "@schema@".ready[];
begin
    if not pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".lane'), p_lane) then
        return 0;
    end if;
    v_state := "@schema@".lane_state(p_lane);
    with waiting as (
        select r.* from "@schema@".ready r
        where r.slot = p_slot and r.lane = p_lane
          and (r.seq > v_state.frontier or r.seq <@ (v_state.old_holes + v_state.new_holes))
          and not exists (
            select from "@schema@".completion c where c.slot = p_slot and c.lane = p_lane and c.seq = r.seq offset 0)
        order by r.seq limit p_limit
    ), closed as (
        insert into "@schema@".completion (slot, lane, outcome, seq, finished_at)
        select w.slot, w.lane, 'moved', w.seq, "@schema@".store_now() from waiting w order by w.seq
        on conflict do nothing returning seq
    ), passed as (
        insert into "@schema@".pre_closed (lane, seq, chapter)
        select w.lane, w.seq, w.chapter from waiting w join closed c on c.seq = w.seq
    )
    select array_agg(w.job order by c.seq) into v_rows
    from closed c cross join lateral (
        select r as job from "@schema@".ready r where r.slot = p_slot and r.lane = p_lane and r.seq = c.seq limit 1) w;
    if v_rows is null then
        return 0;
    end if;
    perform "@schema@".ready_again(p_queue, p_priority, array(
        select row(r.job_id, null, p_queue, p_priority, r.created_at, r.run_lease, r.attempt, r.max_attempts, r.kind, r.args, r.options)::"@schema@".scheduled
        from unnest(v_rows) r order by r.seq));
    return cardinality(v_rows);
end $$;
