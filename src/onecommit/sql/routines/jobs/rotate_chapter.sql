-- Guarantee: enqueues and claims write to the next chapter from now on, if its slot was truncated. Internal, for the one
-- tender. The chapter row is written before the fence moves: setval is not undone by a rollback.
create or replace function "@schema@".rotate_chapter() returns table (action text, chapter integer)
language plpgsql as $$
#variable_conflict use_column
declare
    v_head constant integer := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    v_ring "@schema@".ring;
    v_opened timestamptz;
begin
    select * into v_ring from "@schema@".ring r;
    select c.opened_at into v_opened from "@schema@".chapter c where c.chapter = v_head;
    if not found then
        -- The transaction that moved the fence here was rolled back: the chapter counts from now on.
        insert into "@schema@".chapter (chapter) values (v_head);
        return;
    end if;
    if v_ring.reclaimed < v_head + 1 - 6
        or not "@schema@".chapter_is_full(v_head, v_opened, v_ring.chapter_lifetime, v_ring.chapter_rows) then
        return;
    end if;
    update "@schema@".chapter c set closed_at = "@schema@".store_now() where c.chapter = v_head;
    insert into "@schema@".chapter as c (chapter) values (v_head + 1)
    on conflict on constraint chapter_pkey do update set opened_at = excluded.opened_at;
    perform setval('"@schema@".head_fence', v_head + 1, true);
    return query select 'rotate', v_head + 1;
end $$;
