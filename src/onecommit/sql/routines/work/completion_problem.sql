-- What is wrong with a completion that no executor can mean, naming the field: null if nothing is. Internal.
create or replace function "@schema@".completion_problem(p_event text, p_code text, p_result bytea, p_result_codec text)
returns text
language sql immutable parallel safe as $$
    select case
        when p_event is null or p_event not in
            ('succeeded', 'retry_before_effect', 'failed_terminal', 'ambiguous', 'exception', 'compatibility')
            then 'event: is not one that ends an attempt'
        when (p_event = 'succeeded') <> (p_result is not null) or (p_result is null) <> (p_result_codec is null)
            then 'result: belongs, with its codec, to succeeded alone'
        when p_event = 'succeeded' and p_code is not null then 'code: a success has none'
        when p_code !~ '^[A-Za-z0-9._:-]+$' or octet_length(p_code) > 120 or p_code ~* '^asdur'
            then 'code: must be 1 to 120 of A-Z a-z 0-9 . _ : - and not begin with ASDUR'
        when octet_length(p_result) > 262144 then 'result: is longer than 262144 bytes'
        when p_result is not null then "@schema@".identifier_problem('result_codec', p_result_codec)
    end
$$;
