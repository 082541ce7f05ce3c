-- Guarantee: from the commit on no process whose package knows only schema versions below p_writer_min opens the store or
-- registers as a worker. Refused while such workers are alive, unless p_force: then they are ended and claim nothing more,
-- and the next rescue takes what they have open. Returns their names. It goes down too, as far as the migrations allow.
-- For operator. READ COMMITTED: the workers must be looked up in a snapshot taken after the lock. Locks: schema (exclusive,
-- this transaction). Raises OC006, OC009 (another store, workers alive, a migration needs more), 22023.
create or replace function "@schema@".fence_writers(
    p_store_id uuid, p_writer_min integer, p_force boolean, p_actor text, p_reason text) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_version integer;
    v_needed integer;
    v_workers bigint[];
    v_names text[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'fence_writers needs READ COMMITTED' using errcode = 'OC006';
    end if;
    perform pg_advisory_xact_lock("@schema@".schema_lock_class(), 0);
    if not exists (select from "@schema@".store_metadata m where m.store_id = p_store_id) then
        raise exception 'this database holds another store' using errcode = 'OC009',
            hint = 'Compare ONECOMMIT_STORE_ID with store_status.';
    end if;
    select max(h.version), coalesce(max(h.writer_min), 1) into v_version, v_needed from "@schema@".schema_migration h;
    if (p_writer_min between 1 and v_version) is not true then
        raise exception 'writer_min: must be 1 to %, the installed schema version', v_version using errcode = '22023';
    elsif p_writer_min < v_needed then
        raise exception 'an applied migration breaks packages that do not know schema version %', v_needed
            using errcode = 'OC009', hint = 'What was contracted does not come back: restore a backup, or use newer packages.';
    end if;
    perform "@schema@".record_action('fence_writers', p_writer_min::text, p_actor, p_reason);
    select coalesce(array_agg(w.worker order by w.worker), '{}'), coalesce(array_agg(w.name order by w.worker), '{}')
    into v_workers, v_names
    from "@schema@".worker w
    where w.ended_at is null and w.epoch = pg_sequence_last_value('"@schema@".epoch_fence'::regclass)
      and "@schema@".known_schema_version(w.info) < p_writer_min;
    if v_names <> '{}' and p_force is not true then
        raise exception 'workers of an older package are alive: %', array_to_string(v_names, ', ') using errcode = 'OC009',
            hint = 'Upgrade or stop them; one that was killed is gone after its rescue window. With force they are ended now.';
    end if;
    update "@schema@".worker w set ended_at = "@schema@".store_now() where w.worker = any (v_workers);
    update "@schema@".leader l set until = '-infinity' where l.worker = any (v_workers);
    update "@schema@".store_metadata m set writer_min = p_writer_min;
    return v_names;
end $$;
