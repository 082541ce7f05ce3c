-- When the attempt after the current, failed one becomes eligible, or why there is none: `closed` is deadline, circuit,
-- elapsed or attempts. Slots of a plan count from the acceptance and are not rebased; else the delay counts from p_now.
create or replace function "@schema@".next_attempt(
    p_work "@schema@".work, p_now timestamptz, out eligible_at timestamptz, out closed text)
language plpgsql immutable parallel safe as $$
begin
    closed := "@schema@".admission_closed(p_work, p_now);
    if closed is null
        and p_work.attempt >= coalesce(cardinality(p_work.offsets_us), p_work.max_attempts + p_work.authorized_attempts) then
        closed := 'attempts';
    end if;
    if closed is not null then
        return;
    end if;
    if p_work.offsets_us is not null then
        eligible_at := p_work.accepted_at + p_work.offsets_us[p_work.attempt + 1] * interval '1 microsecond';
    else
        eligible_at := p_now + "@schema@".retry_delay_us(
            greatest(p_work.attempt, 1), p_work.initial_delay_us, p_work.max_delay_us) * interval '1 microsecond';
    end if;
    if eligible_at >= "@schema@".work_cutoff(p_work) then
        closed := 'attempts';  -- the cutoff has not come, but nothing fits before it
    elsif p_work.plan_version is null and eligible_at >= p_work.accepted_at + p_work.max_elapsed_us * interval '1 microsecond' then
        closed := 'elapsed';
    end if;
    if closed is not null then
        eligible_at := null;
    end if;
end $$;
