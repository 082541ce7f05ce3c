-- Whether a permit may have had an effect: it is ambiguous, or granted and was admitted or is of another epoch than
-- p_current (a promotion may keep the permit and lose its admission). In SQL, so that the statements which ask it of
-- their rows contain it when they are planned. see_permits alone says the same in its own words. Internal.
create or replace function "@schema@".may_have_had_effect(
    p_outcome text, p_admitted_at timestamptz, p_epoch bigint, p_current bigint) returns boolean
language sql immutable parallel safe as $$
    select p_outcome = 'ambiguous' or p_outcome = 'granted' and (p_admitted_at is not null or p_epoch <> p_current)
$$;
