-- Guarantee: the queue has its lane before the job falls due (adoption in a promoter would meet a full pool too late),
-- and the leader is told at commit of a job due before it would look by itself. Internal.
create or replace function "@schema@".announce_schedule(p_queue text, p_priority integer, p_run_at timestamptz) returns void
language plpgsql as $$
begin
    if not exists (select from "@schema@".lane l where l.queue = p_queue and l.priority = p_priority) then
        perform "@schema@".adopt_lane(p_queue, p_priority);
    end if;
    if p_run_at < "@schema@".store_now() + interval '10 seconds' then
        perform pg_notify('@schema@', 's');
    end if;
end $$;
