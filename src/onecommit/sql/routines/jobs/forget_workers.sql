-- Guarantee: an ended incarnation is forgotten a minute after its last open attempt was closed; cancellations are
-- forgotten after an hour. Internal, after a rescue that found nothing more.
create or replace function "@schema@".forget_workers() returns void
language plpgsql as $$
begin
    delete from "@schema@".worker w
    where w.ended_at < "@schema@".store_now() - interval '1 minute'
      and not exists (select from "@schema@".lease l where l.worker = w.worker)
      and not exists (
        select from "@schema@".claim c cross join lateral unnest(c.chapters, c.seqs) i (chapter, seq)
        where c.worker = w.worker and c.request >= w.oldest_request
          and i.chapter >= pg_sequence_last_value('"@schema@".tail_fence'::regclass)
          and not exists (select from "@schema@".completion d
                          where d.slot = "@schema@".ring_slot(i.chapter) and d.lane = c.lane and d.seq = i.seq offset 0)
        offset 0);      -- looked up worker by worker: a join would unnest every claim
    delete from "@schema@".cancellation c where c.at < "@schema@".store_now() - interval '1 hour';
    delete from "@schema@".unique_key u where not u.held and u.keep_until < "@schema@".store_now();
end $$;
