-- Trigger of work, before an update: set-once witnesses, terminal facts, and states that fit together, for whoever may
-- update the table at all. That is a runtime under a search_path of its own, so every operator is named with its schema;
-- `is distinct from`, `in` and comparisons of rows look theirs up by the path. Raises 23514.
create or replace function "@schema@".guard_work() returns trigger
language plpgsql as $$
begin
    if old.terminal_at is not null and pg_catalog.to_jsonb(new) operator(pg_catalog.-) 'purged_at'
            operator(pg_catalog.<>) (pg_catalog.to_jsonb(old) operator(pg_catalog.-) 'purged_at') then
        raise exception 'terminal Work cannot be changed' using errcode = '23514';
    end if;
    -- A comparison with null is not true either: what was set stays set.
    if (old.execution_admission_closed_at is not null
            and (new.execution_admission_closed_at operator(pg_catalog.=) old.execution_admission_closed_at
                and new.execution_admission_closed_reason operator(pg_catalog.=) old.execution_admission_closed_reason) is not true)
        or (old.execution_deadline_reached_at is not null
            and (new.execution_deadline_reached_at operator(pg_catalog.=) old.execution_deadline_reached_at) is not true)
        or (old.cancel_requested_at is not null
            and (new.cancel_requested_at operator(pg_catalog.=) old.cancel_requested_at) is not true)
        or (old.purged_at is not null and (new.purged_at operator(pg_catalog.=) old.purged_at) is not true) then
        raise exception 'a witness of Work is written once' using errcode = '23514';
    end if;
    if (new.lease_owner is not null)
            operator(pg_catalog.<>) (new.state operator(pg_catalog.=) any (array['leased', 'effect_permitted', 'cancel_pending']))
        or (new.lease_owner is null) operator(pg_catalog.<>) (new.lease_expires_at is null)
        or (new.terminal_at is not null) operator(pg_catalog.<>) (new.state operator(pg_catalog.=) any (array[
            'succeeded', 'succeeded_after_cancel_requested', 'failed', 'canceled_before_effect'])) then
        raise exception 'lease, terminal time and state of Work do not fit together' using errcode = '23514';
    end if;
    if new.revision operator(pg_catalog.<) old.revision or new.attempt operator(pg_catalog.<) old.attempt
        or new.lease_generation operator(pg_catalog.<) old.lease_generation then
        raise exception 'revision, attempt and lease generation of Work only rise' using errcode = '23514';
    end if;
    return new;
end $$;
