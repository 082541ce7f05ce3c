-- Whether some live worker serves this contract and does not advertise work_exit_v1. Internal.
create or replace function "@schema@".lacks_exit_workers(p_contract_name text, p_contract_version text) returns boolean
language sql stable as $$
    select exists (
        select from "@schema@".worker w
        where w.ended_at is null and w.epoch = pg_sequence_last_value('"@schema@".epoch_fence'::regclass)
          and w.info -> 'work' ? (p_contract_name || '/' || p_contract_version)
          and not coalesce(w.info -> 'capabilities' ? 'work_exit_v1', false))
$$;
