-- Whether a JSON text has an escape that jsonb and text cannot hold: \u0000, or half of a surrogate pair. Internal.
-- Escaped backslashes go first, so that \\u0000 (a backslash and letters) is not taken for an escape; then whole pairs.
create or replace function "@schema@".has_bad_escape(p_json text) returns boolean
language sql immutable strict parallel safe as $$
    select regexp_replace(replace(p_json, e'\\\\', ''),
               e'\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g')
           ~ e'\\\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})'
$$;
