-- Guarantee: each key is held by exactly one job. A key in use by a transaction that is still open waits for its
-- outcome: a loser is told the winner's job id, and becomes the winner when the other rolls back. Internal.
-- Locks: unique_key rows in key order, so that two bulk calls cannot deadlock; none of a row that another job keeps,
-- so that the end of that job never waits for the caller ("do update where false" would lock it).
create or replace function "@schema@".reserve_unique_keys(p_keys bytea[], p_job_ids bigint[], p_keep_until timestamptz[])
returns table (item integer, holder bigint)
language plpgsql as $$
begin
    loop
        insert into "@schema@".unique_key (key, job_id, keep_until)
        select distinct on (n.key) n.key, n.job_id, n.keep_until
        from unnest(p_keys, p_job_ids, p_keep_until) with ordinality n (key, job_id, keep_until, i)
        where n.key is not null
        order by n.key, n.i
        on conflict (key) do nothing;
        -- What nobody keeps any more makes room; then it is inserted in the next turn.
        exit when not exists (
            select from unnest(p_keys) k where k is not null
            and not exists (select from "@schema@".unique_key u where u.key = k
                            and (u.held or u.keep_until > "@schema@".store_now())));
        perform from "@schema@".unique_key u
        where u.key = any (p_keys) and not u.held and u.keep_until <= "@schema@".store_now() order by u.key for update;
        delete from "@schema@".unique_key u
        where u.key = any (p_keys) and not u.held and u.keep_until <= "@schema@".store_now();
    end loop;
    return query
        select n.i::integer, u.job_id
        from unnest(p_keys) with ordinality n (key, i)
        join "@schema@".unique_key u on u.key = n.key
        where n.key is not null;
end $$;
