-- When the attempt after the current, failed one becomes eligible, or why there is none: `closed` is deadline, circuit,
-- elapsed or attempts. Slots of a plan count from the acceptance and are not rebased; else the delay counts from p_now.
create or replace function "@schema@".next_attempt(
    p_work "@schema@".work, p_now timestamptz, out eligible_at timestamptz, out closed text)
language sql immutable parallel safe as $$
    select case when n.closed is null then n.eligible_at end, n.closed
    from (
        select e.eligible_at,
               case
                   when "@schema@".admission_closed(p_work, p_now) is not null then "@schema@".admission_closed(p_work, p_now)
                   when p_work.attempt >= e.allowed then 'attempts'
                   when p_work.plan_version is not null then "@schema@".admission_closed(p_work, greatest(p_now, e.eligible_at))
                   when e.eligible_at >= p_work.accepted_at + p_work.max_elapsed_us * interval '1 microsecond' then 'elapsed'
               end as closed
        from (
            select case
                       when p_work.offsets_us is not null then p_work.accepted_at
                           + p_work.offsets_us[p_work.attempt + 1] * interval '1 microsecond'
                       else p_now + "@schema@".retry_delay_us(greatest(p_work.attempt, 1), p_work.initial_delay_us,
                                                              p_work.max_delay_us) * interval '1 microsecond'
                   end as eligible_at,
                   coalesce(cardinality(p_work.offsets_us), p_work.max_attempts + p_work.authorized_attempts) as allowed
        ) e
    ) n
$$;
