-- Where the ring and its maintenance stand at the time at, in one row. The ring has room for ring_size chapters; the next
-- one needs the slot of the oldest. reclaim_due_at: of the oldest, null while it is the head. head_is_full: the head waits
-- to be closed. leader: who leads, or led last; promotion_due_at: the time of the first scheduled job. For reader. Read-only.
create or replace function "@schema@".store_health()
returns table (at timestamptz, ring_size integer, oldest integer, head integer, head_is_full boolean, reclaim_due_at timestamptz,
    leader bigint, leader_until timestamptz, promotion_due_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_head constant integer := pg_sequence_last_value('"@schema@".head_fence'::regclass);
begin
    return query
        select "@schema@".store_now(), 6, r.reclaimed + 1, v_head,
               coalesce("@schema@".chapter_is_full(v_head, c.opened_at, r.chapter_lifetime, r.chapter_rows), false),
               "@schema@".reclaim_due_at(r.reclaimed + 1, v_head), l.worker, nullif(l.until, '-infinity'),
               (select min(s.run_at) from "@schema@".scheduled s)
        from "@schema@".ring r cross join "@schema@".leader l
        left join "@schema@".chapter c on c.chapter = v_head;
end $$;
