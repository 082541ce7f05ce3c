-- Guarantee: the incarnation counts as alive for another window, and rescue looks at none of its claims below
-- p_oldest_request. Returns recent cancellations. For executor. Locks: schema (shared), worker row. Raises OC004,
-- OC008.
create or replace function "@schema@".heartbeat_worker(p_worker bigint, p_oldest_request bigint, p_epoch bigint)
returns table (cancel_job_ids bigint[], cancel_run_leases bigint[])
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    update "@schema@".worker w
    set heartbeat_at = "@schema@".store_now(), oldest_request = greatest(w.oldest_request, p_oldest_request)
    where w.worker = p_worker and w.ended_at is null;
    if not found then
        perform "@schema@".refuse_ended(p_worker);
    end if;
    return query select c.* from "@schema@".recent_cancellations() c;
end $$;
