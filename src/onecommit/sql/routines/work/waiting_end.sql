-- Work that waits for its next attempt: in its slot if it has a plan, else from p_now on, not before it is due.
create or replace function "@schema@".waiting_end(p_work "@schema@".work, p_now timestamptz) returns "@schema@".work_end
language sql immutable parallel safe as $$
    select row(
        case when p_work.attempt = 0 then 'pending' else 'retry_wait' end, null,
        case
            when p_work.offsets_us is not null then
                p_work.accepted_at + p_work.offsets_us[p_work.attempt + 1] * interval '1 microsecond'
            when p_work.attempt = 0 then greatest(p_work.eligible_at, p_now)
            else p_now
        end, null, null)::"@schema@".work_end
$$;
