-- What tells one completion of an attempt from another: its event, code and result.
create or replace function "@schema@".completion_digest(p_event text, p_code text, p_result bytea, p_result_codec text)
returns bytea
language plpgsql immutable parallel safe as $$
begin
    return sha256(convert_to(p_event || '/' || coalesce(p_code, '') || '/' || coalesce(p_result_codec, '') || '/', 'UTF8')
                  || coalesce(sha256(p_result), ''));
end $$;
