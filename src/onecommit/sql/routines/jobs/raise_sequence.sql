-- Guarantee: the sequence's last value is at least p_floor; it never goes back. Internal.
create or replace function "@schema@".raise_sequence(p_sequence regclass, p_floor bigint) returns void
language plpgsql as $$
begin
    if p_floor > coalesce(pg_sequence_last_value(p_sequence), 0) then
        perform setval(p_sequence, p_floor, true);
    end if;
end $$;
