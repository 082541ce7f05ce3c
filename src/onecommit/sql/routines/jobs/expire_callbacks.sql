-- Guarantee: callbacks past their timeout say so, and are forgotten a week after they were resolved; until then a late or
-- second resolution gets its true answer. Internal, for maintenance. Locks: callback rows (skipping locked ones).
create or replace function "@schema@".expire_callbacks(p_limit integer) returns void
language plpgsql as $$
begin
    update "@schema@".callback c set resolution = 'timed_out', resolved_at = "@schema@".store_now()
    where c.callback_id in (
        select d.callback_id from "@schema@".callback d
        where d.resolution is null and d.timeout_at <= "@schema@".store_now() limit p_limit for update skip locked);
    delete from "@schema@".callback c
    where c.callback_id in (
        select d.callback_id from "@schema@".callback d
        where d.resolution is not null and d.resolved_at < "@schema@".store_now() - interval '7 days'
        limit p_limit for update skip locked);
end $$;
