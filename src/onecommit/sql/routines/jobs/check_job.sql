-- Guarantee: kind, arguments and attempts of one job are within bounds; else 22023 that names the field, never the value.
-- Called when the short test of enqueue_job fails. Internal.
create or replace function "@schema@".check_job(p_kind text, p_args text, p_max_attempts integer) returns void
language plpgsql immutable as $$
begin
    perform "@schema@".check_payloads_each(array[p_kind], array[p_args]);
    if p_max_attempts is null or p_max_attempts not between 1 and 32767 then
        raise exception 'max_attempts: must be an integer from 1 to 32767' using errcode = '22023';
    end if;
end $$;
