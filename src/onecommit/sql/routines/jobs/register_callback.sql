-- Guarantee: the open attempt is materialized and has this callback; token and run lease stay. A name finds the
-- callback of an earlier attempt of the job with what became of it, unless it timed out or asked for a retry. A
-- repeated call is success. For executor. Locks: schema (shared), attempt, completion key, callback rows. Raises OC001,
-- OC004, 22023, 40001.
create or replace function "@schema@".register_callback(p_callback uuid, p_job_id bigint, p_run_lease bigint,
    p_claim_slot integer, p_receipt_id bigint, p_batch_id bigint, p_batch_index integer, p_name text, p_timeout_us bigint,
    p_epoch bigint) returns table (callback_id text, timeout_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_callback "@schema@".callback;
begin
    perform "@schema@".enter_runtime(p_epoch);
    if p_timeout_us is null or p_timeout_us not between 1 and 31622400000000 then
        raise exception 'timeout: must be more than 0 and at most 366 days' using errcode = '22023';
    end if;
    if length(p_name) not between 1 and 200 then
        raise exception 'name: must have 1 to 200 characters' using errcode = '22023';
    end if;
    perform "@schema@".require_lease(p_job_id, p_run_lease, p_claim_slot, p_receipt_id, p_batch_id, p_batch_index, p_epoch);
    v_callback := "@schema@".find_callback(p_job_id, p_run_lease, p_name);
    if v_callback.callback_id is null then
        insert into "@schema@".callback as c (callback_id, job_id, run_lease, name, registered_at, timeout_at)
        values (coalesce(p_callback, gen_random_uuid()), p_job_id, p_run_lease, p_name, "@schema@".store_now(),
            "@schema@".store_now() + p_timeout_us * interval '1 microsecond')
        on conflict on constraint callback_pkey do update set run_lease = c.run_lease
            where c.job_id = excluded.job_id and c.run_lease = excluded.run_lease
        returning c.* into v_callback;
        if not found then
            raise exception 'callback: the id is taken' using errcode = '22023';
        end if;
    elsif v_callback.resolution in ('completed', 'failed') then
        -- It came when no attempt of the job ran.
        update "@schema@".callback c set ended = true where c.callback_id = v_callback.callback_id;
        perform "@schema@".close_externally(p_job_id, p_run_lease, v_callback.resolution, v_callback.payload, 0);
    end if;
    return query select v_callback.callback_id::text, v_callback.timeout_at;
end $$;
