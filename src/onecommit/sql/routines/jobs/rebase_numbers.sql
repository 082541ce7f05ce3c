-- Guarantee: every number sequence and fence lies at or above what the tables hold.
-- Internal, under the exclusive schema lock. Open holes need no clearing: they settle by generation at the next claims.
create or replace function "@schema@".rebase_numbers() returns void
language plpgsql as $$
declare
    v_lane "@schema@".lane;
    v_top record;
begin
    perform "@schema@".raise_sequence('"@schema@".job_number', greatest(
        (select max(r.job_id) from "@schema@".ready r), (select max(s.job_id) from "@schema@".scheduled s),
        (select max(d.job_id) from "@schema@".dead_letter d), (select max(l.job_id) from "@schema@".lease l),
        (select max(d.job_id) from "@schema@".dependant d)));
    perform "@schema@".raise_sequence('"@schema@".batch_number', (select max(c.batch_id) from "@schema@".claim c));
    perform "@schema@".raise_sequence('"@schema@".worker_number', (select max(w.worker) from "@schema@".worker w));
    perform "@schema@".raise_sequence('"@schema@".head_fence', (select max(c.chapter) from "@schema@".chapter c));
    perform "@schema@".raise_sequence('"@schema@".tail_fence', (select r.reclaimed + 1 from "@schema@".ring r));
    for v_lane in select * from "@schema@".lane l loop
        select greatest(v_lane.frontier, max(c.frontier)) as frontier, greatest(v_lane.label, max(c.label)) as label
        into v_top from "@schema@".claim c where c.lane = v_lane.lane;
        perform "@schema@".raise_sequence(v_lane.number_seq, greatest(v_top.frontier,
            (select max(r.seq) from "@schema@".ready r where r.lane = v_lane.lane)));
        perform "@schema@".raise_sequence(v_lane.generation_seq, v_top.label + 1);
    end loop;
end $$;
