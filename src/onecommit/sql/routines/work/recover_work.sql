-- Guarantee: Work that a claim may not take is decided, by the verdict. expired: its permit is classified and a safe one
-- waits for its next attempt. cutoff: its time is over. epoch: it waits for an operator, its permit as it was.
-- corrupt: its payload is not what was accepted. Internal, under the Work's row lock. Locks: dispatch, permit.
create or replace function "@schema@".recover_work(
    p_work "@schema@".work, p_verdict text, p_epoch bigint, p_now timestamptz) returns void
language plpgsql as $$
begin
    case p_verdict
        when 'expired' then
            perform "@schema@".end_attempt(p_work, "@schema@".see_permits(p_work, p_epoch), 'lease_expired', null, p_epoch, p_now);
        when 'cutoff' then
            perform "@schema@".end_attempt(p_work, "@schema@".see_permits(p_work, p_epoch), 'cutoff', null, p_epoch, p_now);
        when 'epoch' then
            perform "@schema@".move_work(
                p_work, row("@schema@".suspended_state(p_work.safety), 'runtime_epoch_mismatch', null, null, null)::"@schema@".work_end,
                'epoch_mismatch', p_epoch, p_now);
        when 'corrupt' then
            perform "@schema@".move_work(
                p_work, row('suspended_contract_unavailable', 'ASDUR109', null, null, null)::"@schema@".work_end,
                'payload_corrupted', p_epoch, p_now);
    end case;
end $$;
