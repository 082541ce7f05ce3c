-- Guarantee: the transaction has no scope context any more, so that its later statements see no rows of Work. Always
-- true, so that hot paths can assign it. Internal.
create or replace function "@schema@".leave_scope() returns boolean
language sql as $$ select set_config('onecommit.scope_id', '', true) is not null $$;
