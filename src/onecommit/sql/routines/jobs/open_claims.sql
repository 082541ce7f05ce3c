-- The open attempts that nobody works on any more: of ended incarnations, and past their deadline. Internal.
-- Claims below a worker's oldest open request have no open attempt and are not looked at. Lateral with limits and
-- offsets, so that whatever the statistics say claims are found by worker and rows by key: a join would read the ring.
create or replace function "@schema@".open_claims(p_limit integer)
returns table (chapter integer, lane smallint, seq bigint, job_id bigint, run_lease bigint, attempt smallint, code text)
language sql stable as $$
    select i.chapter, c.lane, i.seq, i.job_id, i.run_lease::bigint, r.attempt,
           case when w.ended_at is not null then 'worker_lost' else 'deadline_passed' end
    from "@schema@".worker w
    cross join lateral (
        select c.* from "@schema@".claim c
        where c.worker = w.worker and c.request >= w.oldest_request
          and (w.ended_at is not null or c.deadline < "@schema@".store_now())
        offset 0
    ) c
    cross join lateral unnest(c.chapters, c.seqs, c.job_ids, c.run_leases) i (chapter, seq, job_id, run_lease)
    cross join lateral (
        select r.attempt from "@schema@".ready r
        where r.slot = "@schema@".ring_slot(i.chapter) and r.lane = c.lane and r.seq = i.seq limit 1
    ) r
    where i.chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass)
      and not exists (
        select from "@schema@".completion d
        where d.slot = "@schema@".ring_slot(i.chapter) and d.lane = c.lane and d.seq = i.seq offset 0)
    limit p_limit
$$;
