-- Guarantee: a worker that sleeps until Work comes is told at commit of Work that is due at once. Internal.
-- NOTIFY serialises commits, so it is sent only while somebody sleeps; and a hint only: discovery finds all Work.
create or replace function "@schema@".announce_work(p_due_at timestamptz, p_now timestamptz) returns boolean
language plpgsql as $$
begin
    if p_due_at <= p_now
        and pg_sequence_last_value('"@schema@".work_sleeper'::regclass) > extract(epoch from clock_timestamp()) * 1000 then
        perform pg_notify('@schema@', 'w');
    end if;
    return true;
end $$;
