-- Locks the dispatch row of Work whose row the caller holds: before its permit, as the order of locks wants it.
-- Internal. Raises OC012.
create or replace function "@schema@".lock_dispatch(p_work_id bigint) returns void
language plpgsql as $$
begin
    perform from "@schema@".dispatch d where d.work_id = p_work_id for update;
    if not found then
        raise exception 'Work % has no dispatch row', p_work_id using errcode = 'OC012',
            hint = 'The store is damaged: restore it, and rotate the epoch.';
    end if;
end $$;
