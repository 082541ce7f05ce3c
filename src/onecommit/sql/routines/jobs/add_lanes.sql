-- Guarantee: p_count more lanes stand in the pool; returns how many are free. Owner only: it runs DDL, so it is no
-- definer. Locks: the pool. Raises 22023.
create or replace function "@schema@".add_lanes(p_count integer) returns integer
language plpgsql as $$
declare
    v_first integer;
begin
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
