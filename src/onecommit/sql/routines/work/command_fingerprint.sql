-- What tells a command from another under the same id: its operation and every argument, each with its length.
create or replace function "@schema@".command_fingerprint(p_operation text, p_arguments text[]) returns bytea
language sql immutable parallel safe as $$
    select sha256(convert_to(p_operation || array_to_string(array(
        select coalesce(':' || length(a.argument) || ':' || a.argument, '-')
        from unnest(p_arguments) with ordinality a (argument, n) order by a.n), ''), 'UTF8'))
$$;
