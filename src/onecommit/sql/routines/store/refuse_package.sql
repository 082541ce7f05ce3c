-- Raises OC004, the one code on which packages of every version end their process. Internal.
create or replace function "@schema@".refuse_package() returns void
language plpgsql as $$
begin
    raise exception 'the store is fenced against the package of this worker, which is too old' using errcode = 'OC004',
        hint = 'Upgrade the onecommit package of this process.';
end $$;
