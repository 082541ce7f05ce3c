-- Guarantee: the rows just written to p_chapter cannot have been truncated, and a worker that asked to be woken is
-- told at commit. Always true, for assignment. Internal.
-- Raises 40001 when the chapter was reclaimed under a snapshot or a pause: retry.
create or replace function "@schema@".leave_lane(p_lane smallint, p_sleeper_seq regclass, p_chapter bigint) returns boolean
language plpgsql as $$
begin
    if p_chapter < pg_sequence_last_value('"@schema@".tail_fence'::regclass) then
        raise exception 'the chapter was reclaimed while this transaction wrote to it' using errcode = '40001',
            hint = 'Retry the transaction.';
    end if;
    -- NOTIFY serialises commits, so it is sent only while somebody sleeps. The mark is the time until which a
    -- sleeper listens, in milliseconds: a worker that died asleep is forgotten by itself.
    -- Returned, not performed: an expression needs no executor.
    return pg_sequence_last_value(p_sleeper_seq) <= extract(epoch from clock_timestamp()) * 1000
        or pg_notify('@schema@', 'r' || p_lane) is not null;
end $$;
