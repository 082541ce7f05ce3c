-- Whether the chapter has lived or grown enough to be closed; an empty one never has. Internal.
-- The rows are estimated from the size, at no less than 100 bytes a row: counting would cost more than it tells.
create or replace function "@schema@".chapter_is_full(p_chapter integer, p_opened timestamptz, p_lifetime interval, p_rows bigint)
returns boolean
language plpgsql as $$
declare
    v_size constant bigint := pg_relation_size(format('%I.ready_%s', '@schema@', "@schema@".ring_slot(p_chapter))::regclass);
begin
    return v_size > p_rows * 100 or v_size > 0 and p_opened <= "@schema@".store_now() - p_lifetime;
end $$;
