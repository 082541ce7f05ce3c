-- How many attempts each worker has claimed and not closed, by lane; those with a lease are not among them. Internal.
-- Claims below a worker's oldest open request have no open attempt and are not looked at.
create or replace function "@schema@".running_attempts() returns table (worker bigint, lane smallint, attempts bigint)
language sql stable as $$
    select w.worker, c.lane, sum(n.n)::bigint
    from "@schema@".worker w
    cross join lateral (
        select c.* from "@schema@".claim c where c.worker = w.worker and c.request >= w.oldest_request offset 0
    ) c
    cross join lateral (
        select count(*) as n from unnest(c.chapters, c.seqs) i (chapter, seq)
        where i.chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass)
          and not exists (
            select from "@schema@".completion d
            where d.slot = "@schema@".ring_slot(i.chapter) and d.lane = c.lane and d.seq = i.seq offset 0)
    ) n
    group by w.worker, c.lane
$$;
