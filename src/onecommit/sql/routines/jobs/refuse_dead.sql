-- Raises OC008. Internal.
create or replace function "@schema@".refuse_dead() returns void
language plpgsql as $$
begin
    raise exception 'this worker incarnation is unknown or was declared dead' using errcode = 'OC008',
        hint = 'Register a new incarnation; open attempts of the old one are rescued.';
end $$;
