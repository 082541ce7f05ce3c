-- Guarantee: p_count more lanes stand in the pool; returns how many are free. For owner: it runs DDL, so it is no
-- definer. Locks: the pool. Raises 22023, 42501.
create or replace function "@schema@".add_lanes(p_count integer) returns integer
language plpgsql as $$
declare
    v_first integer;
begin
    -- Another role's sequences would lack the grants of the owner's default privileges, and a fence that may not be read
    -- is null from PostgreSQL 17 on.
    if current_user <> (select pg_get_userbyid(c.relowner) from pg_catalog.pg_class c where c.oid = '"@schema@".lane'::regclass) then
        raise exception 'lanes are added by the owner of the schema' using errcode = '42501',
            hint = 'Connect as the owner, or SET ROLE to it.';
    end if;
    perform pg_advisory_xact_lock("@schema@".lock_class('"@schema@".lane'), -1);
    select max(l.lane) + 1 into v_first from "@schema@".lane l;
    if p_count is null or p_count < 1 or v_first + p_count > 1024 then
        raise exception 'count: the pool holds at most 1024 lanes' using errcode = '22023';
    end if;
    for n in v_first .. v_first + p_count - 1 loop
        execute format('create sequence %I.lane_%s_number as bigint cache 1', '@schema@', n);
        execute format('create sequence %I.lane_%s_generation as bigint cache 1', '@schema@', n);
        execute format('create sequence %I.lane_%s_sleeper as bigint minvalue 0 start 0 cache 1', '@schema@', n);
        insert into "@schema@".lane (lane, number_seq, generation_seq, sleeper_seq)
        values (n, format('%I.lane_%s_number', '@schema@', n)::regclass, format('%I.lane_%s_generation', '@schema@', n)::regclass,
                format('%I.lane_%s_sleeper', '@schema@', n)::regclass);
        perform setval(l.generation_seq, 1), setval(l.sleeper_seq, 0) from "@schema@".lane l where l.lane = n;
    end loop;
    return (select count(*) from "@schema@".lane l where l.queue is null and l.lane > 0);
end $$;
