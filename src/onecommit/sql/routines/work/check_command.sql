-- Raises 22023 for a command without an identity, somebody who gives it, or a reason. Internal.
create or replace function "@schema@".check_command(p_command_id text, p_actor text, p_reason text) returns void
language plpgsql immutable as $$
begin
    perform "@schema@".check_identifier('command_id', p_command_id);
    if (p_actor ~ '[^[:space:]]' and length(p_actor) <= 200) is not true then
        raise exception 'actor: must be 1 to 200 characters and not blank' using errcode = '22023';
    end if;
    if (p_reason ~ '[^[:space:]]' and length(p_reason) <= 1000) is not true then
        raise exception 'reason: must be 1 to 1000 characters and not blank' using errcode = '22023';
    end if;
end $$;
