-- The Work of this scope, or null: its row, dispatch row and permits are locked, in this order. Internal, in the scope.
-- Raises OC012.
create or replace function "@schema@".lock_work(p_scope_id text, p_work_id bigint) returns "@schema@".work
language plpgsql as $$
declare
    v_work "@schema@".work;
begin
    select w.* into v_work from "@schema@".work w where w.work_id = p_work_id and w.scope_id = p_scope_id for update;
    if v_work.work_id is not null and v_work.terminal_at is null then
        perform "@schema@".lock_dispatch(p_work_id);
        perform from "@schema@".effect_permit p where p.work_id = p_work_id order by p.permit_id for update;
    end if;
    return v_work;
end $$;
