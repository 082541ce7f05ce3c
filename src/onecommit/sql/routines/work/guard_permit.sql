-- Trigger of effect_permit, before an update: what a permit authorized, its admission and a known outcome stay, for whoever
-- may update the table at all. As in guard_work, no operator is looked up by the caller's search_path. Raises 23514.
create or replace function "@schema@".guard_permit() returns trigger
language plpgsql as $$
begin
    if new.permit_id operator(pg_catalog.<>) old.permit_id or new.work_id operator(pg_catalog.<>) old.work_id
        or new.scope_id operator(pg_catalog.<>) old.scope_id or new.attempt operator(pg_catalog.<>) old.attempt
        or new.lease_generation operator(pg_catalog.<>) old.lease_generation
        or new.scope_generation operator(pg_catalog.<>) old.scope_generation
        or new.lease_owner operator(pg_catalog.<>) old.lease_owner or new.activity_id operator(pg_catalog.<>) old.activity_id
        or new.granted_at operator(pg_catalog.<>) old.granted_at
        or (old.invocation_admitted_at is not null
            and (new.invocation_admitted_at operator(pg_catalog.=) old.invocation_admitted_at) is not true) then
        raise exception 'what a permit authorized, and its admission, cannot be changed' using errcode = '23514';
    end if;
    if old.outcome operator(pg_catalog.=) any (array['known_succeeded', 'proven_no_effect'])
        and new.outcome operator(pg_catalog.<>) old.outcome then
        raise exception 'the known outcome of a permit cannot be changed' using errcode = '23514';
    end if;
    return new;
end $$;
