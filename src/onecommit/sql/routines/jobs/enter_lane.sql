-- Guarantee: numbers drawn from o_number_seq by this transaction are covered by a generation that no claim can settle
-- before this transaction ends. Internal: enqueue, promotion, evacuation and re-entry draw their numbers behind it.
-- Locks: (lane, generation) shared, to the end of the transaction.
create or replace function "@schema@".enter_lane(p_queue text, p_priority integer,
    out o_lane smallint, out o_number_seq regclass, out o_sleeper_seq regclass)
language plpgsql as $$
declare
    v_generation_seq regclass;
    v_generation bigint;
begin
    loop
        select l.lane, l.number_seq, l.sleeper_seq, l.generation_seq
        into o_lane, o_number_seq, o_sleeper_seq, v_generation_seq
        from "@schema@".lane l where l.queue = p_queue and l.priority = p_priority and l.shard = 0;
        exit when found;
        perform "@schema@".adopt_lane(p_queue, p_priority);
    end loop;
    loop
        v_generation := pg_sequence_last_value(v_generation_seq);
        -- Tested, not performed: an expression without an executor. A claim may have moved the generation between the
        -- read and the lock, and settled it already; so it is read again.
        exit when pg_advisory_xact_lock_shared("@schema@".lock_class('"@schema@".ready'),
                "@schema@".generation_key(o_lane, v_generation)) is not null
            and pg_sequence_last_value(v_generation_seq) = v_generation;
    end loop;
end $$;
