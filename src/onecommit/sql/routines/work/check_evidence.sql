-- Raises 22023 for evidence that nobody can mean: its kind, or a result without its codec or beside anything but applied.
-- Internal.
create or replace function "@schema@".check_evidence(p_evidence text, p_result bytea, p_result_codec text) returns void
language plpgsql immutable as $$
begin
    if p_evidence is null or p_evidence not in ('applied', 'not_applied', 'unknown') then
        raise exception 'evidence: must be applied, not_applied or unknown' using errcode = '22023';
    end if;
    if (p_result is null) <> (p_result_codec is null) or p_result is not null and p_evidence <> 'applied' then
        raise exception 'result: belongs, with its codec, to applied alone' using errcode = '22023';
    end if;
    if octet_length(p_result) > 262144 then
        raise exception 'result: is longer than 262144 bytes' using errcode = '22023';
    end if;
    if p_result is not null then
        perform "@schema@".check_identifier('result_codec', p_result_codec);
    end if;
end $$;
