-- Whether some ready row of the slot is not closed: a look that spares the lock. Two counts, like the proof itself: an
-- anti join planned while the chapter was small is quadratic when it is large. Internal.
create or replace function "@schema@".chapter_is_open(p_slot smallint) returns boolean
language sql volatile as $$
    select (select count(*) from "@schema@".ready r where r.slot = p_slot)
        <> (select count(*) from "@schema@".completion c where c.slot = p_slot)
$$;
