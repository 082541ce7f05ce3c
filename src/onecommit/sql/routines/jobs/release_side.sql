-- Guarantee: the ended jobs hold no unique key (a key with a window is kept, unheld, to its end) and no progress row.
-- Internal. Locks: rows in key order.
create or replace function "@schema@".release_side(p_job_ids bigint[]) returns void
language plpgsql as $$
begin
    perform from "@schema@".unique_key u where u.job_id = any (p_job_ids) order by u.key for update;
    delete from "@schema@".unique_key u
    where u.job_id = any (p_job_ids) and coalesce(u.keep_until, '-infinity') <= "@schema@".store_now();
    update "@schema@".unique_key u set held = false where u.job_id = any (p_job_ids);
    perform from "@schema@".progress p where p.job_id = any (p_job_ids) order by p.job_id for update;
    delete from "@schema@".progress p where p.job_id = any (p_job_ids);
end $$;
