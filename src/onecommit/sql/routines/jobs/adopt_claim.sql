-- The batches that an earlier call with the same (worker, request) committed, as that call returned them. Internal,
-- under the request lock. Raises OC008 when a chapter of such a batch was reclaimed meanwhile: its other attempts are
-- then left to the rescue of this incarnation, because a shortened batch would shift every batch_index.
create or replace function "@schema@".adopt_claim(p_worker bigint, p_request bigint) returns setof "@schema@".claimed_batch
language plpgsql stable as $$
declare
    v_batch "@schema@".claimed_batch;
begin
    for v_batch in
        select 'claimed', c.lane, c.slot::integer, c.batch_id, c.receipt_id, c.claimed_at, c.deadline,
               c.chapters, c.seqs, c.job_ids, c.run_leases::bigint[], b.attempts, b.max_attempts, b.kinds, b.args, b.options, b.created_at
        from "@schema@".claim c
        cross join lateral (
            select array_agg(r.attempt + 1 order by i.n) as attempts, array_agg(r.max_attempts::integer order by i.n) as max_attempts,
                   array_agg(r.kind order by i.n) as kinds, array_agg(r.args::text order by i.n) as args,
                   array_agg(r.options::text order by i.n) as options, array_agg(r.created_at order by i.n) as created_at
            from unnest(c.chapters, c.seqs) with ordinality i (chapter, seq, n)
            cross join lateral (
                select r.* from "@schema@".ready r
                where r.slot = "@schema@".ring_slot(i.chapter) and r.lane = c.lane and r.seq = i.seq limit 1
            ) r
        ) b
        where c.worker = p_worker and c.request = p_request and cardinality(c.seqs) > 0
        order by c.batch_id
    loop
        if cardinality(v_batch.kinds) is distinct from cardinality(v_batch.seqs) then
            raise exception 'the claim request is too old to be adopted' using errcode = 'OC008',
                hint = 'Register a new incarnation; open attempts of the old one are rescued.';
        end if;
        return next v_batch;
    end loop;
end $$;
