-- Whether some ready row of the slot is not closed: a cheap look that spares the lock and the count. Internal.
create or replace function "@schema@".chapter_is_open(p_slot smallint) returns boolean
language sql volatile as $$
    select exists (
        select from "@schema@".ready r where r.slot = p_slot
        and not exists (select from "@schema@".completion c where c.slot = p_slot and c.lane = r.lane and c.seq = r.seq))
$$;
