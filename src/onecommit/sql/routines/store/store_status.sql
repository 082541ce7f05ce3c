-- Identity and versions of this store; active_epoch is null until an operator initialises it. writer_min: a package that
-- knows only older schema versions is refused. single_role: whoever asks has the rights of the schema's owner, as in
-- development. For every capability.
create or replace function "@schema@".store_status()
returns table (store_id uuid, schema_version integer, active_epoch bigint, reader_min integer, writer_min integer, single_role boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select m.store_id,
           (select max(h.version) from "@schema@".schema_migration h),
           nullif(pg_sequence_last_value('"@schema@".epoch_fence'::regclass), 0),
           1, m.writer_min,
           pg_has_role(session_user, (select n.nspowner from pg_catalog.pg_namespace n where n.oid = '"@schema@"'::regnamespace), 'usage')
    from "@schema@".store_metadata m
$$;
