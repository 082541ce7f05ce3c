-- The digest of a unique option, or null when absent; else 22023. Internal.
create or replace function "@schema@".option_unique_key(p_unique jsonb) returns bytea
language plpgsql immutable as $$
begin
    if p_unique is null or jsonb_typeof(p_unique) = 'null' then
        return null;
    end if;
    if jsonb_typeof(p_unique) <> 'object' or p_unique - '{key,window_us}'::text[] <> '{}'::jsonb then
        raise exception 'unique: must be an object with key and, if wanted, window_us' using errcode = '22023';
    end if;
    if jsonb_typeof(p_unique -> 'key') is distinct from 'string' or p_unique ->> 'key' !~ '^([0-9a-f]{2}){1,64}$' then
        raise exception 'unique: key must be a hex digest of 1 to 64 bytes' using errcode = '22023';
    end if;
    return decode(p_unique ->> 'key', 'hex');
end $$;
