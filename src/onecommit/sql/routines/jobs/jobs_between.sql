-- Ids from p_from to below p_before of jobs that may be in the state (null: in any) and are of the queue and kind (nulls:
-- of any) and have all of the tags (null: any), newest first. Internal.
-- The obvious look, every row of the ring with its completion, takes minutes in a long history. What waits lies beyond the
-- frontier of its lane or in a hole, what runs is in a claim that its worker has open, and of the cancelled there are few.
create or replace function "@schema@".jobs_between(p_state text, p_queue text, p_kind text, p_tags text[], p_from bigint, p_before bigint)
returns table (job_id bigint)
language sql stable as $$
    with lanes as materialized (
        select l.lane, l.queue, s.frontier, s.old_holes + s.new_holes as holes
        from "@schema@".lane l cross join lateral "@schema@".lane_state(l.lane) s where l.queue is not null
    ),
    -- By their ids alone, before any join: by its lane a row is found among all of the ring.
    newest as not materialized (
        select r.slot, r.lane, r.seq, r.job_id, r.kind, r.options from "@schema@".ready r
        where r.job_id >= p_from and r.job_id < p_before offset 0
    )
    select distinct n.job_id from (
        select s.job_id, s.queue, s.kind, s.options from "@schema@".scheduled s where coalesce(p_state, 'scheduled') = 'scheduled'
        union all
        select b.job_id, b.queue, b.kind, b.options from "@schema@".dependant b where coalesce(p_state, 'blocked') = 'blocked'
        union all
        select d.job_id, d.queue, d.kind, d.options from "@schema@".dead_letter d where coalesce(p_state, 'dead') = 'dead'
        union all
        select l.job_id, l.queue, l.kind, l.options from "@schema@".lease l where coalesce(p_state, 'running') in ('running', 'waiting')
        union all
        select r.job_id, coalesce(l.queue, r.options #>> '{_place,queue}'), r.kind, r.options
        from newest r
        join "@schema@".lane l on l.lane = r.lane
        left join lateral (
            select c.outcome from "@schema@".completion c
            where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq limit 1
        ) c on true
        where coalesce(p_state, 'completed') = 'completed'
          and case when p_state is null then c.outcome is null or c.outcome in ('completed', 'cancelled')
                   else c.outcome = 'completed' end
        union all
        select r.job_id, l.queue, r.kind, r.options
        from newest r join lanes l on l.lane = r.lane
        where p_state = 'ready' and (r.seq > l.frontier or r.seq <@ l.holes)
          and not exists (
            select from "@schema@".completion c where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq offset 0)
        union all
        select i.job_id, l.queue, r.kind, r.options
        from "@schema@".worker w
        cross join lateral (
            select c.* from "@schema@".claim c where c.worker = w.worker and c.request >= w.oldest_request offset 0
        ) c
        cross join lateral unnest(c.chapters, c.seqs, c.job_ids) i (chapter, seq, job_id)
        cross join lateral (
            select r.kind, r.options from "@schema@".ready r
            where r.slot = "@schema@".ring_slot(i.chapter) and r.lane = c.lane and r.seq = i.seq limit 1
        ) r
        join lanes l on l.lane = c.lane
        where p_state = 'running' and i.chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass)
          and not exists (
            select from "@schema@".completion d
            where d.slot = "@schema@".ring_slot(i.chapter) and d.lane = c.lane and d.seq = i.seq offset 0)
        union all
        select r.job_id, coalesce(l.queue, r.options #>> '{_place,queue}'), r.kind, r.options
        from "@schema@".completion c
        cross join lateral (
            select r.* from "@schema@".ready r where r.slot = c.slot and r.lane = c.lane and r.seq = c.seq limit 1
        ) r
        join "@schema@".lane l on l.lane = c.lane
        where p_state = 'cancelled' and c.outcome = 'cancelled'
    ) n
    where n.job_id >= p_from and n.job_id < p_before
      and (p_queue is null or n.queue = p_queue) and (p_kind is null or n.kind = p_kind)
      and (p_tags is null or (n.options -> 'tags') ?& p_tags)
    order by n.job_id desc
$$;
