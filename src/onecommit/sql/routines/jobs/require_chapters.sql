-- Guarantee: no completion just written lies in a chapter that was reclaimed since p_tail was read. Internal, after the
-- insert: its lock excludes TRUNCATE from then on, so a check before it would prove nothing. Raises 40001.
create or replace function "@schema@".require_chapters(p_chapters integer[], p_tail bigint) returns void
language plpgsql as $$
declare
    v_tail constant bigint := pg_sequence_last_value('"@schema@".tail_fence'::regclass);
begin
    if v_tail > p_tail and exists (select from unnest(p_chapters) c where c >= p_tail and c < v_tail) then
        raise exception 'a chapter was reclaimed while it was written to' using errcode = '40001', hint = 'Repeat the call.';
    end if;
end $$;
