-- Guarantee: the attempt completes with this result in the transaction of the caller; its handler is stopped. See
-- resolve_callback for the answers; all but accepted change nothing. For callback_ingress.
-- READ COMMITTED. Locks: schema (shared), attempt, callback row, lease, side rows. Raises OC004, OC006, 22023, 40001.
create or replace function "@schema@".complete_external(p_callback uuid, p_result text, p_epoch bigint) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_result constant json := "@schema@".check_callback_payload(p_result);
begin
    perform "@schema@".enter_runtime(p_epoch);
    return "@schema@".resolve_callback(p_callback, 'completed', v_result, null);
end $$;
