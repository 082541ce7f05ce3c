-- A ready row with its completion, if any, as a view row. Claimed is told from the lane's state, which goes over rows
-- that were closed before any claim. Internal.
create or replace function "@schema@".attempt_view(p_ready "@schema@".ready) returns setof "@schema@".job_view
language sql stable as $$
    select p_ready.job_id,
           case when c.outcome is not null then c.outcome::text when t.claimed then 'running' else 'ready' end,
           coalesce(l.queue, p_ready.options #>> '{_place,queue}'),
           coalesce(l.priority, (p_ready.options #>> '{_place,priority}')::smallint)::integer, p_ready.kind, p_ready.attempt + t.claimed::integer, p_ready.max_attempts::integer,
           p_ready.run_lease::bigint + (t.claimed and p_ready.lane <> 0)::integer, p_ready.created_at, null::timestamptz, c.finished_at,
           c.outcome::text, null::text, p_ready.args::text, nullif(p_ready.options - '_place', '{}')::text, null::text, c.detail::text, "@schema@".parent_of(p_ready.options)
    from "@schema@".lane l
    cross join lateral "@schema@".lane_state(l.lane) s
    cross join lateral (
        select p_ready.lane = 0 or p_ready.seq <= s.frontier and not p_ready.seq <@ (s.old_holes + s.new_holes)
            and not exists (select from "@schema@".pre_closed p where p.lane = p_ready.lane and p.seq = p_ready.seq) as claimed
    ) t
    left join "@schema@".completion c on c.slot = p_ready.slot and c.lane = p_ready.lane and c.seq = p_ready.seq
    where l.lane = p_ready.lane
$$;
