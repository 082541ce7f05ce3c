-- Guarantee: for a batch whose completions were just inserted or met an existing row, the losers. A row that says the
-- same outcome is the attempt's own earlier call (a ready row is one attempt): success. A row that says materialized
-- hands over to the lease, and one whose job ends with it is told as 'ended': no loser. Internal.
create or replace function "@schema@".judge_conflicts(p_chapters integer[], p_lanes smallint[], p_seqs bigint[],
    p_job_ids bigint[], p_run_leases bigint[], p_outcome "@schema@".outcome, p_details text[], p_tail bigint, p_now timestamptz)
returns setof "@schema@".closing_verdict
language plpgsql as $$
declare
    v_item record;
    v_verdict text;
begin
    for v_item in
        select i.n, i.chapter, i.job_id, i.run_lease, i.detail, c.outcome
        from unnest(p_chapters, p_lanes, p_seqs, p_job_ids, p_run_leases, p_details)
            with ordinality i (chapter, lane, seq, job_id, run_lease, detail, n)
        left join lateral (
            select c.outcome from "@schema@".completion c
            where c.slot = "@schema@".ring_slot(i.chapter) and c.lane = i.lane and c.seq = i.seq limit 1
        ) c on true
        where i.chapter < p_tail or c.outcome is distinct from p_outcome
        order by i.n
    loop
        v_verdict := case when v_item.chapter < p_tail then 'recycled' else 'stale' end;
        if v_item.outcome = 'materialized' or v_item.chapter < p_tail then
            v_verdict := coalesce("@schema@".close_lease(v_item.job_id, v_item.run_lease, p_outcome, null, null,
                v_item.detail, p_now), v_verdict);
        end if;
        if v_verdict <> 'closed' then
            return next row(v_item.n::integer, v_verdict)::"@schema@".closing_verdict;
        end if;
    end loop;
end $$;
