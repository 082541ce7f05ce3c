-- Raises 22023 for a command without an identity, somebody who gives it, or a reason. Internal.
create or replace function "@schema@".check_command(p_command_id text, p_actor text, p_reason text) returns void
language plpgsql immutable as $$
begin
    perform "@schema@".check_identifier('command_id', p_command_id);
    if coalesce(length(trim(p_actor)), 0) not between 1 and 200 then
        raise exception 'actor: must be 1 to 200 characters' using errcode = '22023';
    end if;
    if coalesce(length(trim(p_reason)), 0) not between 1 and 1000 then
        raise exception 'reason: must be 1 to 1000 characters' using errcode = '22023';
    end if;
end $$;
