-- The class of the schema lock: session-exclusive for migrations and epochs, transaction-shared for every mutation.
create or replace function "@schema@".schema_lock_class() returns integer
language sql stable as $$ select "@schema@".lock_class('"@schema@".store_metadata') $$;
