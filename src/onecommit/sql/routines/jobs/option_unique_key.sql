-- The digest of a unique option, or null when absent; else 22023. Internal.
create or replace function "@schema@".option_unique_key(p_unique jsonb) returns bytea
language plpgsql immutable as $$
declare
    v_key text := p_unique ->> 'key';
begin
    if p_unique is null or jsonb_typeof(p_unique) = 'null' then
        return null;
    end if;
    if v_key is null or v_key !~ '^([0-9a-f]{2}){1,64}$' then
        raise exception 'unique: key must be a hex digest of 1 to 64 bytes' using errcode = '22023';
    end if;
    return decode(v_key, 'hex');
end $$;
