-- What a claim makes of Work at p_now: claim, lost, or what must be decided first: expired, cutoff, epoch.
create or replace function "@schema@".claim_verdict(p_work "@schema@".work, p_epoch bigint, p_now timestamptz) returns text
language sql immutable parallel safe as $$
    select case
        when p_work.state not in ('pending', 'leased', 'effect_permitted', 'retry_wait', 'cancel_pending') then 'lost'
        when p_now < p_work.lease_expires_at then 'lost'
        when p_work.epoch <> p_epoch then 'epoch'
        when p_work.lease_expires_at is not null then 'expired'
        when "@schema@".admission_closed(p_work, p_now) is not null then 'cutoff'
        when p_now < p_work.eligible_at then 'lost'
        else 'claim'
    end
$$;
