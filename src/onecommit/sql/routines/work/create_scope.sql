-- Guarantee: the scope exists, at generation 1 if it did not. Always true, so that it can be assigned. Internal, under the
-- scope's lock, which keeps it active if somebody else creates it meanwhile.
create or replace function "@schema@".create_scope(p_scope_id text, p_now timestamptz) returns boolean
language plpgsql as $$
begin
    insert into "@schema@".scope (scope_id, created_at) values (p_scope_id, p_now) on conflict do nothing;
    if found then
        insert into "@schema@".scope_history (scope_id, generation, event, actor, at)
        values (p_scope_id, 1, 'created', session_user::text, p_now);
    end if;
    return true;
end $$;
