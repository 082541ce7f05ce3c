-- Raises OC008 for an incarnation that is unknown or has ended; OC004 if register_worker would refuse its next one.
-- Internal.
create or replace function "@schema@".refuse_ended(p_worker bigint) returns void
language plpgsql as $$
begin
    if exists (select from "@schema@".worker w cross join "@schema@".store_metadata m
               where w.worker = p_worker and "@schema@".known_schema_version(w.info) < m.writer_min) then
        perform "@schema@".refuse_package();
    end if;
    perform "@schema@".refuse_dead();
end $$;
