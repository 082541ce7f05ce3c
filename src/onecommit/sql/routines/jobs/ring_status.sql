-- The ring: fences, the chapters that stand, and their sizes in bytes. For reader. Read-only.
create or replace function "@schema@".ring_status()
returns table (chapter integer, slot integer, is_head boolean, below_tail boolean, opened_at timestamptz, closed_at timestamptz, bytes bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select c.chapter, s.slot::integer, c.chapter = pg_sequence_last_value('"@schema@".head_fence'::regclass),
               c.chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass), c.opened_at, c.closed_at,
               (select sum(pg_total_relation_size(format('%I.%s_%s', '@schema@', f, s.slot)::regclass))::bigint
                from unnest(array['ready', 'claim', 'completion']) f)
        from "@schema@".chapter c cross join lateral "@schema@".ring_slot(c.chapter) s (slot)
        where c.chapter > (select r.reclaimed from "@schema@".ring r)
        order by c.chapter;
end $$;
