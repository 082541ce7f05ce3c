-- What belongs to Work that accept_work has just inserted: its payload, its dispatch and the first row of its history;
-- a worker that sleeps is told. Internal.
create or replace function "@schema@".place_work(p_work_id bigint, p_payload bytea, p_epoch bigint, p_now timestamptz) returns void
language plpgsql as $$
declare
    v_work "@schema@".work;
begin
    select w.* into v_work from "@schema@".work w where w.work_id = p_work_id;
    insert into "@schema@".work_payload (work_id, scope_id, payload) values (p_work_id, v_work.scope_id, p_payload);
    insert into "@schema@".dispatch (
        work_id, scope_id, contract_name, contract_version, due_at, discover_at, expected_revision, priority)
    values (p_work_id, v_work.scope_id, v_work.contract_name, v_work.contract_version, v_work.eligible_at,
            least(v_work.eligible_at, "@schema@".work_cutoff(v_work)), 1, v_work.priority);
    v_work.state := null;
    perform "@schema@".write_work_history(v_work, 'accepted', 'pending', 1, p_epoch, p_now, null, v_work.command_id);
    perform "@schema@".announce_work(v_work.eligible_at, p_now);
end $$;
