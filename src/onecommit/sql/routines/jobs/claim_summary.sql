-- The row that ends a claim's answer. Internal.
create or replace function "@schema@".claim_summary(p_status text) returns "@schema@".claimed_batch
language sql immutable as $$
    select row(p_status, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)::"@schema@".claimed_batch
$$;
