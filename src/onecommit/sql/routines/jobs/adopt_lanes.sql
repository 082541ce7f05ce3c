-- Guarantee: the queue has its default lane. Returns all its lanes. For executor. Locks: schema (shared), queue row.
-- Raises OC004, OC007, 22023.
create or replace function "@schema@".adopt_lanes(p_queue text, p_epoch bigint) returns smallint[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform "@schema@".enter_runtime(p_epoch);
    perform "@schema@".adopt_lane(p_queue, 2);
    return "@schema@".queue_lanes(p_queue);
end $$;
