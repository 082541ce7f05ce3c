-- Why Work cannot be reconciled now: null, or 110, 111, 116 for its state, or 118 while another command reconciles it.
-- Internal, under the locks of lock_work.
create or replace function "@schema@".reconcile_code(p_work "@schema@".work, p_command_id text, p_epoch bigint, p_now timestamptz)
returns text
language sql stable as $$
    select case
        when p_work.work_id is null or p_work.terminal_at is not null then "@schema@".operator_code(p_work, null)
        when p_work.state <> 'suspended_reconciliation_required' or p_work.code = 'runtime_epoch_mismatch'
            or not "@schema@".has_unresolved(p_work.work_id, p_epoch) then 'ASDUR116'
        when exists (
            select from "@schema@".operator_command c
            where c.work_id = p_work.work_id and c.state = 'started' and c.lease_expires_at > p_now
              and c.command_id <> p_command_id) then 'ASDUR118'
    end
$$;
