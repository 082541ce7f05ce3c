-- The open attempts that nobody works on any more: of ended incarnations, and past their deadline. Internal.
-- Claims below a worker's oldest open request have no open attempt and are not looked at.
create or replace function "@schema@".open_claims(p_limit integer)
returns table (chapter integer, lane smallint, seq bigint, job_id bigint, run_lease bigint, attempt smallint, code text)
language sql stable as $$
    select i.chapter, c.lane, i.seq, i.job_id, i.run_lease::bigint, r.attempt,
           case when w.ended_at is not null then 'worker_lost' else 'deadline_passed' end
    from "@schema@".worker w
    join "@schema@".claim c on c.worker = w.worker and c.request >= w.oldest_request
    cross join lateral unnest(c.chapters, c.seqs, c.job_ids, c.run_leases) i (chapter, seq, job_id, run_lease)
    join "@schema@".ready r on r.slot = "@schema@".ring_slot(i.chapter) and r.lane = c.lane and r.seq = i.seq
    where (w.ended_at is not null or c.deadline < "@schema@".store_now())
      and i.chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass)
      and not exists (select from "@schema@".completion d where d.slot = r.slot and d.lane = r.lane and d.seq = r.seq)
    limit p_limit
$$;
