-- Guarantee: each key is held by exactly one job. A key in use by a transaction that is still open waits for its
-- outcome: a loser is told the winner's job id, and becomes the winner when the other rolls back. Internal.
-- Locks: unique_key rows in key order, so that two bulk calls cannot deadlock.
create or replace function "@schema@".reserve_unique_keys(p_keys bytea[], p_job_ids bigint[], p_keep_until timestamptz[])
returns table (item integer, holder bigint)
language plpgsql as $$
begin
    insert into "@schema@".unique_key as u (key, job_id, keep_until)
    select distinct on (n.key) n.key, n.job_id, n.keep_until
    from unnest(p_keys, p_job_ids, p_keep_until) with ordinality n (key, job_id, keep_until, i)
    where n.key is not null
    order by n.key, n.i
    on conflict (key) do update set job_id = excluded.job_id, held = true, keep_until = excluded.keep_until
        where not u.held and u.keep_until <= "@schema@".store_now();
    return query
        select n.i::integer, u.job_id
        from unnest(p_keys) with ordinality n (key, i)
        join "@schema@".unique_key u on u.key = n.key
        where n.key is not null;
end $$;
