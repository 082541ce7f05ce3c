-- Raises OC001. Internal.
create or replace function "@schema@".refuse_stale() returns void
language plpgsql as $$
begin
    raise exception 'the token does not name an open attempt' using errcode = 'OC001',
        hint = case when current_setting('transaction_isolation') = 'read committed'
            then 'Roll the transaction back and return: another outcome was recorded, or the token is foreign.'
            else 'Roll the transaction back and return: another outcome was recorded, the token is foreign, or the '
                'transaction took its snapshot before the claim.' end;
end $$;
