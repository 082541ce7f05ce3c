-- Guarantee: incarnations without a heartbeat for p_window, or of another epoch, are ended, and no claim of theirs can
-- commit later. Internal. Locks: worker (exclusive, try: a claim in flight is proof of life).
create or replace function "@schema@".declare_dead(p_window interval, p_epoch bigint) returns void
language plpgsql as $$
declare
    v_worker bigint;
begin
    for v_worker in
        select w.worker from "@schema@".worker w
        where w.ended_at is null and (w.heartbeat_at < "@schema@".store_now() - p_window or w.epoch <> p_epoch)
        order by w.worker
    loop
        if pg_try_advisory_xact_lock("@schema@".lock_class('"@schema@".worker'), hashint8(v_worker)) then
            -- Asked again: the heartbeat may have come before the lock.
            update "@schema@".worker w set ended_at = "@schema@".store_now()
            where w.worker = v_worker and w.ended_at is null
              and (w.heartbeat_at < "@schema@".store_now() - p_window or w.epoch <> p_epoch);
        end if;
    end loop;
end $$;
