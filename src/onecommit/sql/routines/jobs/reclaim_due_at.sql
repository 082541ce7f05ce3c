-- When a closed chapter's slot may be given back: after the retention, or its floor when the head waits for the slot; null
-- for one that is open. Internal.
create or replace function "@schema@".reclaim_due_at(p_chapter integer, p_head integer) returns timestamptz
language sql stable as $$
    select c.closed_at + case when p_head + 1 - p_chapter >= 6 then least(r.retention_floor, r.retention) else r.retention end
    from "@schema@".chapter c cross join "@schema@".ring r
    where c.chapter = p_chapter
$$;
