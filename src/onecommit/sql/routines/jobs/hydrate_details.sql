-- The details with each job's last progress, which becomes part of its terminal history. Internal.
create or replace function "@schema@".hydrate_details(p_job_ids bigint[], p_details text[]) returns text[]
language sql stable as $$
    select array_agg(case when g.job_id is null then i.detail
        else (coalesce(i.detail::jsonb, '{}') || jsonb_build_object('progress', g.data))::text end order by i.n)
    from unnest(p_job_ids, p_details) with ordinality i (job_id, detail, n)
    left join "@schema@".progress g on g.job_id = i.job_id
$$;
