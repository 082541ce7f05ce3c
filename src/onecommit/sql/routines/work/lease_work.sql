-- Guarantee: the items, whose rows the caller holds and has judged, are leased to p_owner under their next attempts.
-- Always true, so that it can be assigned. Internal. Locks: dispatch. Raises OC012.
create or replace function "@schema@".lease_work(
    p_work_ids bigint[], p_owner bigint, p_request bigint, p_epoch bigint, p_now timestamptz) returns boolean
language plpgsql as $$
declare
    v_leased bigint;
begin
    update "@schema@".work w
    set state = 'leased', revision = w.revision + 1, attempt = w.attempt + 1, lease_generation = w.lease_generation + 1,
        epoch = p_epoch, lease_owner = p_owner, lease_request = p_request, lease_started_at = p_now,
        lease_expires_at = least(p_now + w.lease_us * interval '1 microsecond', w.deadline), code = null
    where w.work_id = any (p_work_ids);
    update "@schema@".dispatch d
    set state = 'leased', (discover_at, expected_revision) = (
        select w.lease_expires_at, w.revision from "@schema@".work w where w.work_id = d.work_id)
    where d.work_id = any (p_work_ids);
    get diagnostics v_leased = row_count;
    if v_leased <> cardinality(p_work_ids) then
        perform "@schema@".lock_dispatch(i.work_id) from unnest(p_work_ids) i (work_id);  -- raises
    end if;
    insert into "@schema@".work_history (
        work_id, scope_id, revision, event, to_state, attempt, lease_generation, scope_generation, epoch, lease_owner, at)
    select w.work_id, w.scope_id, w.revision, 'claimed', w.state, w.attempt, w.lease_generation, w.scope_generation,
           w.epoch, w.lease_owner, p_now
    from "@schema@".work w where w.work_id = any (p_work_ids);
    return true;
end $$;
