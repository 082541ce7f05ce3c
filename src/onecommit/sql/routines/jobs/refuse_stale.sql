-- Raises OC001. Internal.
create or replace function "@schema@".refuse_stale() returns void
language plpgsql as $$
begin
    raise exception 'the token does not name an open attempt' using errcode = 'OC001',
        hint = 'Roll the transaction back and return: another outcome was recorded, or the token is foreign.';
end $$;
