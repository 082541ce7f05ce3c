-- Raises 22023 for a completion that no executor can mean. Internal.
create or replace function "@schema@".check_completion(p_event text, p_code text, p_result bytea, p_result_codec text)
returns void
language plpgsql immutable as $$
begin
    if p_event is null or p_event not in
        ('succeeded', 'retry_before_effect', 'failed_terminal', 'ambiguous', 'exception', 'compatibility') then
        raise exception 'event: is not one that ends an attempt' using errcode = '22023';
    end if;
    if (p_event = 'succeeded') <> (p_result is not null) or (p_result is null) <> (p_result_codec is null) then
        raise exception 'result: belongs, with its codec, to succeeded alone' using errcode = '22023';
    end if;
    if p_result is not null then
        perform "@schema@".check_result(p_result, p_result_codec);
    end if;
    if p_event = 'succeeded' and p_code is not null then
        raise exception 'code: a success has none' using errcode = '22023';
    end if;
    if p_code !~ '^[A-Za-z0-9._:-]{1,120}$' or p_code ~* '^asdur' then
        raise exception 'code: must be 1 to 120 of A-Z a-z 0-9 . _ : - and not begin with ASDUR' using errcode = '22023';
    end if;
end $$;
