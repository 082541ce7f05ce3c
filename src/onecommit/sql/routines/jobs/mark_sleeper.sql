-- Guarantee: after p_sleep = true, an enqueue into the queue notifies for ten seconds unless a woken worker passes
-- false. Internal. Set before the look: a producer that read the mark earlier has drawn its numbers earlier, so the
-- claim answers 'pending' and the worker does not sleep.
create or replace function "@schema@".mark_sleeper(p_queue text, p_sleep boolean) returns void
language plpgsql as $$
begin
    perform setval(l.sleeper_seq, m.mark, true)
    from "@schema@".lane l,
         (select case when p_sleep then (extract(epoch from clock_timestamp()) * 1000)::bigint + 10000 else 0 end as mark) m
    where l.queue = p_queue and pg_sequence_last_value(l.sleeper_seq) is distinct from m.mark;
end $$;
