-- The permits of one item of Work, oldest first. For reader, work_operator. Read-only.
create or replace function "@schema@".work_permits(p_work_id bigint)
returns table (
    permit_id bigint, attempt integer, lease_generation bigint, lease_owner bigint, epoch bigint, outcome text,
    granted_at timestamptz, invocation_admitted_at timestamptz, closed_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select p.permit_id, p.attempt, p.lease_generation, p.lease_owner, p.epoch, p.outcome::text, p.granted_at,
               p.invocation_admitted_at, p.closed_at
        from "@schema@".effect_permit p where p.work_id = p_work_id order by p.permit_id;
end $$;
