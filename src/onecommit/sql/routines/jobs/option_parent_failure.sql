-- What becomes of a dependant whose parent does not complete, cancel when not said; else 22023 that names the key. Internal.
create or replace function "@schema@".option_parent_failure(p_options jsonb, p_after bigint) returns text
language plpgsql immutable as $$
declare
    v_rule constant text := p_options ->> 'on_parent_failure';
begin
    if v_rule is not null and p_after is null then
        raise exception 'on_parent_failure: says nothing without after' using errcode = '22023';
    end if;
    if v_rule not in ('cancel', 'enqueue', 'discard') then
        raise exception 'on_parent_failure: must be cancel, enqueue or discard' using errcode = '22023';
    end if;
    return coalesce(v_rule, case when p_after is not null then 'cancel' end);
end $$;
