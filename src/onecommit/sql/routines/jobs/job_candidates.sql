-- Ids of jobs that may match, newest first. Internal.
create or replace function "@schema@".job_candidates(p_state text, p_queue text, p_kind text, p_before bigint) returns table (job_id bigint)
language sql stable as $$
    select distinct n.job_id from (
        select s.job_id, s.queue, s.kind from "@schema@".scheduled s where coalesce(p_state, 'scheduled') = 'scheduled'
        union all
        select b.job_id, b.queue, b.kind from "@schema@".dependant b where coalesce(p_state, 'blocked') = 'blocked'
        union all
        select d.job_id, d.queue, d.kind from "@schema@".dead_letter d where coalesce(p_state, 'dead') = 'dead'
        union all
        select l.job_id, l.queue, l.kind from "@schema@".lease l where coalesce(p_state, 'running') in ('running', 'waiting')
        union all
        select r.job_id, coalesce(l.queue, r.options #>> '{_place,queue}'), r.kind
        from "@schema@".ready r
        join "@schema@".lane l on l.lane = r.lane
        left join lateral (
            select c.outcome from "@schema@".completion c
            where c.slot = r.slot and c.lane = r.lane and c.seq = r.seq limit 1
        ) c on true
        where case when c.outcome is null then coalesce(p_state, 'ready') in ('ready', 'running')
                   else c.outcome in ('completed', 'cancelled') and coalesce(p_state, c.outcome::text) = c.outcome::text end
    ) n
    where (p_queue is null or n.queue = p_queue) and (p_kind is null or n.kind = p_kind)
      and (p_before is null or n.job_id < p_before)
    order by n.job_id desc
$$;
