-- Guarantee: the leased attempt ends as its callback's resolution says, and its worker is told as of a cancellation.
-- Internal, under the attempt lock. Locks: lease row, side rows in key order.
create or replace function "@schema@".close_externally(p_job_id bigint, p_run_lease bigint, p_resolution text, p_payload json,
    p_delay_us bigint) returns void
language plpgsql as $$
declare
    v_detail text := p_payload::text;
begin
    if p_resolution = 'completed' then
        v_detail := ("@schema@".hydrate_details(array[p_job_id], array[json_build_object('result', p_payload)::text]))[1];
    end if;
    if "@schema@".close_lease(p_job_id, p_run_lease, p_resolution::"@schema@".outcome, p_delay_us,
        'callback_' || p_resolution, v_detail, "@schema@".store_now()) = 'ended' then
        perform "@schema@".release_side(array[p_job_id]);
        perform "@schema@".release_dependants(array[p_job_id], array(select p_job_id where p_resolution = 'completed'));
    end if;
    insert into "@schema@".cancellation (job_id, run_lease, at) values (p_job_id, p_run_lease, "@schema@".store_now())
    on conflict do nothing;
    perform pg_notify('@schema@', 'c');
end $$;
