-- Why an operator can do nothing about this Work: null, or 111, 110 or, at another revision than the expected, 112.
create or replace function "@schema@".operator_code(p_work "@schema@".work, p_revision bigint) returns text
language sql immutable parallel safe as $$
    select case
        when p_work.work_id is null then 'ASDUR111'
        when p_work.terminal_at is not null then 'ASDUR110'
        when p_revision <> p_work.revision then 'ASDUR112'
    end
$$;
