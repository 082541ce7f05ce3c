-- The one clock of the protocol. Tests replace its body.
create or replace function "@schema@".store_now() returns timestamptz
language sql volatile parallel safe as $$ select clock_timestamp() $$;
