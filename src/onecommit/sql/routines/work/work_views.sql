-- These items as readers see them, newest first. Internal.
create or replace function "@schema@".work_views(p_work_ids bigint[]) returns setof "@schema@".work_view
language plpgsql stable as $$
begin
    return query
        select w.work_id, w.scope_id::text, w.state::text, w.code, "@schema@".possible_action(w, u.unresolved > 0),
               w.contract_name::text, w.contract_version::text, w.safety, w.activity_id, w.command_id::text,
               w.idempotency_key::text, w.revision, w.attempt, u.unresolved, w.accepted_at, w.due_at, w.deadline,
               w.eligible_at, w.lease_owner, w.lease_expires_at, w.cancel_requested_at, w.terminal_at, w.purged_at
        from "@schema@".work w
        cross join lateral "@schema@".count_unresolved(
            w.work_id, pg_sequence_last_value('"@schema@".epoch_fence'::regclass)) u (unresolved)
        where w.work_id = any (p_work_ids)
        order by w.work_id desc;
end $$;
