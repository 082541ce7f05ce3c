-- Whether every transaction that drew a number under the generations in (p_settled, p_label] has ended.
-- Internal, under the lane lock and BEFORE the look: locking after it, or only the newest generation, loses rows
-- (models/claim_settlement.pml shows both). Locks: (lane, generation) exclusive (try).
create or replace function "@schema@".settle_generations(p_lane smallint, p_settled bigint, p_label bigint) returns boolean
language plpgsql as $$
begin
    for v_generation in p_settled + 1 .. p_label loop
        if not pg_try_advisory_xact_lock(
            "@schema@".lock_class('"@schema@".ready'), "@schema@".generation_key(p_lane, v_generation)) then
            return false;
        end if;
    end loop;
    return true;
end $$;
