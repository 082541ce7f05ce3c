-- Guarantee: the transaction has no scope context any more, so that its later statements see no rows of Work. Internal.
create or replace function "@schema@".leave_scope() returns void
language plpgsql as $$ begin perform set_config('onecommit.scope_id', '', true); end $$;
