-- Guarantee: p_candidate becomes the epoch and every number sequence lies above what the tables hold, so that a
-- store restored from a copy that did not carry its sequences (logical replication) cannot reuse a number.
-- Internal, under the exclusive schema lock: no enqueue or claim is in flight, so no hole can still be filled.
-- The fence moves last: setval is not undone by a rollback, and all that can fail comes before it.
create or replace function "@schema@".activate_epoch(
    p_store_id uuid, p_previous bigint, p_candidate bigint, p_actor text, p_reason text) returns bigint
language plpgsql as $$
declare
    v_lane "@schema@".lane;
begin
    if not exists (select from "@schema@".store_metadata m where m.store_id = p_store_id) then
        raise exception 'this database holds another store' using errcode = 'OC009',
            hint = 'Compare ONECOMMIT_STORE_ID with store_status.';
    end if;
    if (p_actor ~ '[^[:space:]]' and p_reason ~ '[^[:space:]]') is not true then
        raise exception 'actor and reason: must not be empty' using errcode = '22023';
    end if;
    if p_candidate is null or p_candidate <= (
        select coalesce(max(h.epoch), 0) from "@schema@".runtime_epoch_history h) then
        raise exception 'the candidate epoch must be greater than every earlier one' using errcode = '22023';
    end if;
    insert into "@schema@".runtime_epoch_history (epoch, previous, actor, reason)
    values (p_candidate, p_previous, p_actor, p_reason);
    perform "@schema@".rebase_numbers();
    perform setval('"@schema@".epoch_fence', p_candidate, true);
    return p_candidate;
end $$;
