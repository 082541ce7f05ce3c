-- Guarantee: of these items, all terminal and of the scope in context, those that nobody has locked are tombstones; the
-- answer is how many. Internal. Locks: Work (skipping), dispatch.
create or replace function "@schema@".purge_items(p_work_ids bigint[]) returns integer
language plpgsql as $$
declare
    v_ids constant bigint[] := array(
        select w.work_id from "@schema@".work w
        where w.work_id = any (p_work_ids) and w.terminal_at is not null and w.purged_at is null
        order by w.work_id for update skip locked);
begin
    update "@schema@".work w set purged_at = "@schema@".store_now() where w.work_id = any (v_ids);
    delete from "@schema@".dispatch d where d.work_id = any (v_ids);
    delete from "@schema@".work_payload p where p.work_id = any (v_ids);
    update "@schema@".work_result r set result = null where r.work_id = any (v_ids);
    update "@schema@".work_history h set observation = null where h.work_id = any (v_ids) and h.observation is not null;
    return cardinality(v_ids);
end $$;
