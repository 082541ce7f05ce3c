-- What belongs to Work that accept_work has just inserted: its payload, its dispatch and the first row of its history;
-- a worker that sleeps is told. Always true, so that it can be assigned. Internal.
create or replace function "@schema@".place_work(
    p_work "@schema@".work, p_payload bytea, p_epoch bigint, p_now timestamptz) returns boolean
language plpgsql as $$
declare
    v_placed "@schema@".work := p_work;
begin
    insert into "@schema@".work_payload (work_id, scope_id, payload) values (p_work.work_id, p_work.scope_id, p_payload);
    insert into "@schema@".dispatch (
        work_id, scope_id, contract_name, contract_version, due_at, discover_at, expected_revision, priority)
    values (p_work.work_id, p_work.scope_id, p_work.contract_name, p_work.contract_version, p_work.eligible_at,
            least(p_work.eligible_at, "@schema@".work_cutoff(p_work)), 1, p_work.priority);
    v_placed.state := null;
    return "@schema@".write_work_history(v_placed, 'accepted', 'pending', 1, p_epoch, p_now, null, p_work.command_id)
        and "@schema@".announce_work(p_work.eligible_at, p_now);
end $$;
