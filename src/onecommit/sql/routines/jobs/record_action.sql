-- One audit row for an operator's action. Internal. Raises 22023.
create or replace function "@schema@".record_action(p_action text, p_subject text, p_actor text, p_reason text) returns void
language plpgsql as $$
begin
    if (p_actor ~ '[^[:space:]]' and p_reason ~ '[^[:space:]]') is not true then
        raise exception 'actor and reason: must not be empty' using errcode = '22023';
    end if;
    insert into "@schema@".operator_action (action, subject, actor, reason)
    values (p_action, coalesce(p_subject, ''), p_actor, p_reason);
end $$;
