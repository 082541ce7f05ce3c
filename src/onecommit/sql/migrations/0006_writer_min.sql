-- Which packages may still use the store: an operator raises writer_min when no older process is left, and a migration
-- that breaks older packages names the least that it needs. Open to packages of schema version 5.

alter table "@schema@".store_metadata add column writer_min integer not null default 1 check (writer_min > 0);

-- What a breaking migration needed; null: older packages work on.
alter table "@schema@".schema_migration add column writer_min integer check (writer_min > 0);
