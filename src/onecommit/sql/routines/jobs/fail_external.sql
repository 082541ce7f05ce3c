-- Guarantee: the job goes to the dead letters with this reason, code callback_failed; its handler is stopped. See
-- resolve_callback for the answers; all but accepted change nothing. For callback_ingress.
-- READ COMMITTED. Locks: schema (shared), attempt, callback row, lease, side rows. Raises OC004, OC006, 40001.
create or replace function "@schema@".fail_external(p_callback uuid, p_reason text, p_epoch bigint) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    return "@schema@".resolve_callback(p_callback, 'failed', json_build_object('error', left(coalesce(p_reason, ''), 1000)), null);
end $$;
