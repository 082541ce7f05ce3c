-- Guarantee: the oldest chapter's three children are truncated only if every ready row in them is closed, no lane forgets
-- where it stands, and they are the ring's own tables, before and under each lock. Internal, for the one tender; strictly
-- oldest first. Model: models/ring_reclaim.pml. Locks: ready and claim children (share: readers go on, an uncommitted
-- enqueue or claim makes it fail), lanes (try), then the three children exclusively. Raises OC012.
create or replace function "@schema@".reclaim_chapter() returns table (action text, chapter integer)
language plpgsql as $$
#variable_conflict use_column
declare
    v_head constant integer := pg_sequence_last_value('"@schema@".head_fence'::regclass);
    v_ring "@schema@".ring;
    v_oldest integer;
    v_slot smallint;
    v_due_at timestamptz;
    v_children regclass[];
begin
    select * into v_ring from "@schema@".ring r;
    v_oldest := v_ring.reclaimed + 1;
    v_slot := "@schema@".ring_slot(v_oldest);
    v_due_at := "@schema@".reclaim_due_at(v_oldest, v_head);
    if v_oldest < v_head and v_due_at is null then
        -- The transaction that moved the fence on was rolled back: the chapter is kept from now on.
        insert into "@schema@".chapter as c (chapter, closed_at) values (v_oldest, "@schema@".store_now())
        on conflict on constraint chapter_pkey do update set closed_at = excluded.closed_at;
        return;
    end if;
    if v_oldest >= v_head or v_due_at > "@schema@".store_now() then
        return;
    end if;
    v_children := "@schema@".require_children(v_slot);
    if "@schema@".chapter_is_open(v_slot) then
        return;
    end if;
    -- The claim child too: a claim that is still open there could commit a lane's newest state into it. Proving under
    -- ACCESS EXCLUSIVE would stop claims for seconds at 10^7 rows.
    execute format('lock table only %s, only %s in share mode', v_children[1], v_children[2]);
    -- Whoever was waited for may have put another table in the place; and the proof must count what is locked.
    v_children := "@schema@".require_children(v_slot, v_children);
    -- New statements from here on: they see all that committed before the lock was granted.
    if (select count(*) from "@schema@".ready r where r.slot = v_slot)
        <> (select count(*) from "@schema@".completion c where c.slot = v_slot) then
        return;
    end if;
    if not "@schema@".save_lanes(v_slot) then
        return query select 'blocked', v_oldest;
        return;
    end if;
    -- From here on closers of this chapter are refused, even if the truncation fails: the next call goes on with it.
    perform setval('"@schema@".tail_fence', v_oldest + 1, true);
    -- The completion child was not locked until here.
    execute format('lock table only %s, only %s, only %s in access exclusive mode', v_children[1], v_children[2], v_children[3]);
    v_children := "@schema@".require_children(v_slot, v_children);
    execute format('truncate only %s, only %s, only %s continue identity restrict', v_children[1], v_children[2], v_children[3]);
    delete from "@schema@".pre_closed p where p.chapter <= v_oldest;
    update "@schema@".ring r set reclaimed = v_oldest;
    delete from "@schema@".chapter c where c.chapter < v_oldest - 100;
    return query select 'reclaim', v_oldest;
end $$;
