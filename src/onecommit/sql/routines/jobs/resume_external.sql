-- Guarantee: the callback's handler goes on with the payload, now or as soon as it waits. See resolve_callback for the
-- answers; all but accepted change nothing. For callback_ingress.
-- READ COMMITTED. Locks: schema (shared), attempt, callback row. Raises OC004, OC006, 22023, 40001.
create or replace function "@schema@".resume_external(p_callback uuid, p_payload text, p_epoch bigint) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_payload constant json := "@schema@".check_callback_payload(p_payload);
begin
    perform "@schema@".enter_runtime(p_epoch);
    return "@schema@".resolve_callback(p_callback, 'resumed', v_payload, null);
end $$;
