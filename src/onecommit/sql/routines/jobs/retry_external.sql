-- Guarantee: the attempt ends as a failed one that is tried again after p_delay_us, while attempts are left; its
-- handler is stopped. See resolve_callback for the answers; all but accepted change nothing. For callback_ingress. READ
-- COMMITTED. Locks: schema (shared), attempt, callback row, lease, side rows. Raises OC004, OC006, 22023, 40001.
create or replace function "@schema@".retry_external(p_callback uuid, p_delay_us bigint, p_reason text, p_epoch bigint) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if p_delay_us not between 0 and 31622400000000 then
        raise exception 'delay: must be 0 to 366 days' using errcode = '22023';
    end if;
    perform "@schema@".enter_runtime(p_epoch);
    return "@schema@".resolve_callback(p_callback, 'retried', json_build_object('error', left(coalesce(p_reason, ''), 1000)),
        coalesce(p_delay_us, 0));
end $$;
