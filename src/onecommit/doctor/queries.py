"""The questions to PostgreSQL's catalogs; each parameter is the schema's name. Every role may ask them."""

from typing import LiteralString

SCHEMA: LiteralString = """
select pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = %(schema)s
"""

ROUTINES: LiteralString = """
select p.proname as name, p.proname || '(' || oidvectortypes(p.proargtypes) || ')' as signature,
       pg_get_function_identity_arguments(p.oid) as arguments, coalesce(pg_get_function_result(p.oid), '') as returns,
       l.lanname::text as language, p.prosecdef as is_definer,
       array_remove(array[
           case p.provolatile when 'i' then 'immutable' when 's' then 'stable' end,
           case when p.proisstrict then 'strict' end,
           case when p.proleakproof then 'leakproof' end,
           case p.proparallel when 's' then 'parallel safe' when 'r' then 'parallel restricted' end], null) as attributes,
       coalesce(p.proconfig, '{}') as config, pg_get_userbyid(p.proowner) as owner,
       coalesce(p.prosrc, '') as body,
       encode(sha256(convert_to(case when p.prosqlbody is null then p.prosrc else '' end, 'UTF8')), 'hex') as sha256
from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
where n.nspname = %(schema)s order by 2
"""

RELATIONS: LiteralString = """
select c.relname as name, c.relkind::text as kind, pg_get_userbyid(c.relowner) as owner,
       c.relpersistence::text as persistence, c.relrowsecurity as row_security,
       c.relforcerowsecurity as force_row_security,
       (select case when m.relnamespace = c.relnamespace then m.relname::text else m.oid::regclass::text end
        from pg_inherits i join pg_class m on m.oid = i.inhparent where i.inhrelid = c.oid limit 1) as parent,
       pg_get_expr(c.relpartbound, c.oid) as bound,
       exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
               and d.deptype in ('i', 'P') ) as is_owned,
       coalesce((select x.indisvalid and x.indisready from pg_index x where x.indexrelid = c.oid), true) as is_valid
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s order by 1
"""

# Relations, routines and the row types of tables are read elsewhere; default privileges are grants.
OTHERS: LiteralString = """
select i.type as kind, coalesce(i.name, i.identity) as name, pg_get_userbyid(t.typowner) as owner
from pg_depend d join pg_namespace n on n.oid = d.refobjid and d.refclassid = 'pg_namespace'::regclass
cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) i
left join pg_type t on d.classid = 'pg_type'::regclass and t.oid = d.objid
where n.nspname = %(schema)s
  and d.classid not in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_default_acl'::regclass,
                        'pg_publication_namespace'::regclass)
order by 1, 2
"""

GRANTS: LiteralString = """
with named as (select n.oid, n.nspname, n.nspowner, n.nspacl from pg_namespace n where n.nspname = %(schema)s),
granted as (
    select 'schema' as kind, n.nspname::text as object, null::text as "column", n.nspowner as owner,
           coalesce(n.nspacl, acldefault('n', n.nspowner)) as acl
    from named n
    union all
    select 'routine', p.proname || '(' || oidvectortypes(p.proargtypes) || ')', null, p.proowner,
           coalesce(p.proacl, acldefault('f', p.proowner))
    from pg_proc p join named n on n.oid = p.pronamespace
    union all
    select case c.relkind when 'S' then 'sequence' else 'table' end, c.relname, null, c.relowner,
           coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))
    from pg_class c join named n on n.oid = c.relnamespace where c.relkind not in ('i', 'I', 'c')
    union all
    select 'column', c.relname, a.attname, c.relowner, a.attacl
    from pg_attribute a join pg_class c on c.oid = a.attrelid join named n on n.oid = c.relnamespace
    where a.attacl is not null
    union all
    -- The row types of tables cannot be used without the tables, nor array types without their elements.
    select 'type', t.typname, null, t.typowner, coalesce(t.typacl, acldefault('T', t.typowner))
    from pg_type t join named n on n.oid = t.typnamespace
    where t.typtype in ('d', 'e', 'r') or exists (select from pg_class c where c.oid = t.typrelid and c.relkind = 'c')
    union all
    -- What CREATE gives in this schema, beside what is built in.
    select 'default', case d.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'routines'
           when 'T' then 'types' else 'schemas' end || ' made by ' || pg_get_userbyid(d.defaclrole), null, d.defaclrole, d.defaclacl
    from pg_default_acl d join named n on n.oid = d.defaclnamespace
)
select g.kind, g.object, g."column", case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee) end as grantee,
       a.privilege_type as privilege, a.is_grantable as grantable
from granted g cross join lateral aclexplode(g.acl) a
where a.grantee <> g.owner order by 1, 2, 3, 4, 5
"""

POLICIES: LiteralString = """
select c.relname as "table", p.polname as name,
       case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end
           as command,
       p.polpermissive as permissive,
       array(select case r when 0 then 'PUBLIC' else pg_get_userbyid(r)::text end from unnest(p.polroles) r) as roles,
       pg_get_expr(p.polqual, p.polrelid) as "using", pg_get_expr(p.polwithcheck, p.polrelid) as "check"
from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s order by 1, 2
"""

TRIGGERS: LiteralString = """
select c.relname as "table", t.tgname as name, pg_get_triggerdef(t.oid) as definition, t.tgenabled::text as enabled,
       t.tgisinternal as is_internal, false as is_rule
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s
union all
select c.relname, r.rulename, pg_get_ruledef(r.oid), r.ev_enabled::text, false, true
from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relkind not in ('v', 'm') order by 1, 2
"""

ROLES: LiteralString = """
select r.rolname as name, r.rolcanlogin as can_login, r.rolsuper as is_superuser, r.rolbypassrls as bypasses_rls,
       r.rolcreaterole as creates_roles, r.rolcreatedb as creates_databases, r.rolreplication as replicates,
       exists (select from pg_namespace n where n.nspowner = r.oid) as owns_schemas
from pg_roles r order by 1
"""

# The two options exist from PostgreSQL 16 on.
MEMBERSHIPS: LiteralString = """
select r.rolname as role, e.rolname as member, m.admin_option as administers,
       coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, e.rolinherit) as inherits,
       coalesce((to_jsonb(m) ->> 'set_option')::boolean, true) as sets
from pg_auth_members m join pg_roles r on r.oid = m.roleid join pg_roles e on e.oid = m.member order by 1, 2
"""

# 16384 is the first number that a running server gives to an object.
INTRUDERS: LiteralString = """
select pg_describe_object(o.classid, o.oid, 0)
from (select 'pg_proc'::regclass as classid, p.oid, p.pronamespace as namespace from pg_proc p
      union all select 'pg_operator'::regclass, p.oid, p.oprnamespace from pg_operator p
      union all select 'pg_class'::regclass, p.oid, p.relnamespace from pg_class p where p.relkind not in ('i', 'I')
      union all select 'pg_type'::regclass, p.oid, p.typnamespace from pg_type p where p.typrelid = 0 and p.typelem = 0) o
where o.namespace = 'pg_catalog'::regnamespace and o.oid >= 16384
  and not exists (select from pg_depend d where d.classid = o.classid and d.objid = o.oid and d.deptype in ('e', 'i'))
union all
select 'CREATE on pg_catalog for ' || case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee) end
from pg_namespace n cross join lateral aclexplode(n.nspacl) a
where n.nspname = 'pg_catalog' and a.privilege_type = 'CREATE' and a.grantee <> n.nspowner
order by 1
"""

# Each as one text, the same on every major. Columns before types: those of a type stand in the order in which a row is built.
DEFINITIONS: LiteralString = r"""
with named as (select n.oid from pg_namespace n where n.nspname = %(schema)s),
relation as (select c.* from pg_class c join named n on n.oid = c.relnamespace)
select 'column' as kind, c.relname::text as relation, a.attname::text as part,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod),
                 case when a.attcollation <> t.typcollation then 'collate ' || a.attcollation::regcollation::text end,
                 case when a.attstorage <> t.typstorage then 'storage ' || a.attstorage::text end,
                 case when a.attnotnull then 'not null' end,
                 case a.attidentity when 'a' then 'generated always as identity' when 'd' then 'generated by default as identity' end,
                 case a.attgenerated when 's' then 'generated always as ' || pg_get_expr(d.adbin, d.adrelid) || ' stored'
                                     when 'v' then 'generated always as ' || pg_get_expr(d.adbin, d.adrelid) || ' virtual'
                                     else 'default ' || pg_get_expr(d.adbin, d.adrelid) end) as definition
from relation c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relkind in ('r', 'p', 'c')
union all
-- Not-null constraints have rows of their own from PostgreSQL 18 on; they stand with the columns.
select 'constraint', c.relname, k.conname, pg_get_constraintdef(k.oid)
from pg_constraint k join relation c on c.oid = k.conrelid where k.contype <> 'n' and k.contype <> 't'
union all
select 'constraint', t.typname, k.conname, pg_get_constraintdef(k.oid)
from pg_constraint k join pg_type t on t.oid = k.contypid join named n on n.oid = t.typnamespace where k.contype <> 'n'
union all
select 'index', c.relname, '', regexp_replace(pg_get_indexdef(c.oid), '^CREATE (UNIQUE )?INDEX \S+ ON ', '\1')
from relation c where c.relkind in ('i', 'I')
union all
select 'sequence', c.relname, '', format('%%s start %%s increment %%s from %%s to %%s cache %%s%%s', format_type(s.seqtypid, null), s.seqstart,
       s.seqincrement, s.seqmin, s.seqmax, s.seqcache, case when s.seqcycle then ' cycle' else '' end)
from pg_sequence s join relation c on c.oid = s.seqrelid
union all
select 'table', c.relname, '', concat_ws('; ', case when c.relkind = 'p' then 'partition by ' || pg_get_partkeydef(c.oid) else 'plain' end,
       (select string_agg(o, ', ' order by o) from unnest(c.reloptions) o),
       (select string_agg('toast.' || o, ', ' order by o) from pg_class e, unnest(e.reloptions) o where e.oid = c.reltoastrelid),
       case when c.relreplident <> 'd' then 'replica identity ' || c.relreplident::text end)
from relation c where c.relkind in ('r', 'p')
union all
select 'type', t.typname, '', case t.typtype
    when 'e' then (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid)
    when 'c' then (select string_agg(a.attname, ', ' order by a.attnum) from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped)
    else concat_ws(' ', format_type(t.typbasetype, t.typtypmod), case when t.typcollation <> b.typcollation then 'collate ' || t.typcollation::regcollation::text end,
                   case when t.typnotnull then 'not null' end, 'default ' || t.typdefault) end
from pg_type t join named n on n.oid = t.typnamespace left join pg_type b on b.oid = t.typbasetype
where t.typtype in ('e', 'd') or t.typtype = 'c' and (select c.relkind from pg_class c where c.oid = t.typrelid) = 'c'
order by 1, 2, 3
"""

EXCLUSIVE: LiteralString = """
select distinct l.pid from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and l.granted and l.mode = 'AccessExclusiveLock' order by 1
"""

MAY_ASK_STORE: LiteralString = """
select has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = %(schema)s and p.proname = 'store_status' and p.pronargs = 0
"""
