-- Raises OC001; 25006 on a standby, where a claim may be missing that the primary has. Internal.
create or replace function "@schema@".refuse_stale() returns void
language plpgsql as $$
begin
    if pg_is_in_recovery() then
        raise exception 'this server is a standby, where nothing can be completed' using errcode = '25006',
            hint = 'Connect to the primary.';
    end if;
    raise exception 'the token does not name an open attempt' using errcode = 'OC001',
        hint = case when current_setting('transaction_isolation') = 'read committed'
            then 'Roll the transaction back and return: another outcome was recorded, or the token is foreign.'
            else 'Roll the transaction back and return: another outcome was recorded, the token is foreign, or the '
                'transaction took its snapshot before the claim.' end;
end $$;
