-- Guarantee: the incarnation is alive, and cannot be declared dead before this transaction ends; so no claim can commit
-- behind a rescue that has already looked. Internal. Locks: worker (shared). Raises OC008.
create or replace function "@schema@".enter_worker(p_worker bigint) returns void
language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".worker'), hashint8(p_worker));
    if not exists (select from "@schema@".worker w where w.worker = p_worker and w.ended_at is null) then
        raise exception 'this worker incarnation is unknown or was declared dead' using errcode = 'OC008',
            hint = 'Register a new incarnation; open attempts of the old one are rescued.';
    end if;
end $$;
