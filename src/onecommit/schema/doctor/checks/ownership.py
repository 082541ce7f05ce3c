"""One role owns the tables; what runs as its owner runs as a role that can do nothing else."""

from collections.abc import Iterator

from onecommit.schema.doctor.catalog import Catalog
from onecommit.schema.doctor.expected import Expected
from onecommit.schema.doctor.finding import Check, Finding
from onecommit.schema.doctor.rows import RoleRow


def _findings(catalog: Catalog, _: Expected) -> Iterator[Finding]:
    yield from _strangers(catalog)
    for name in sorted(catalog.execution_owners):
        if name in catalog.roles:
            yield from _unbounded(catalog.roles[name], catalog.owner)


def _strangers(catalog: Catalog) -> Iterator[Finding]:
    owned = [(r.name, r.owner) for r in catalog.relations if not r.is_owned]
    owned += [(other.name, other.owner) for other in catalog.others if other.owner is not None]
    owned += [
        (r.signature, r.owner)
        for r in catalog.routines
        if not r.is_definer and r.owner not in catalog.owners
    ]
    if len(catalog.execution_owners) > 1:
        owned += [(r.signature, r.owner) for r in catalog.routines if r.is_definer]
    for name, owner in owned:
        if owner != catalog.owner:
            yield Finding(
                subject=name,
                problem=f"belongs to {owner}, who can change it, while the schema belongs to {catalog.owner}",
                remedy=f"Look at it, then give it to {catalog.owner} with ALTER … OWNER TO.",
            )


def _unbounded(role: RoleRow, schema_owner: str) -> Iterator[Finding]:
    powers = {
        "is a superuser": role.is_superuser,
        "has BYPASSRLS": role.bypasses_rls,
        "has CREATEROLE": role.creates_roles,
        "has CREATEDB": role.creates_databases,
        "has REPLICATION": role.replicates,
        "can log in": role.can_login,
        "owns a schema": role.owns_schemas,
    }
    for power, held in powers.items():
        if held:
            yield Finding(
                subject=role.name,
                problem=f"{power}, and routines run with its rights",
                remedy="Give the routines that run as their owner to a NOLOGIN role without attributes and schemas"
                " (`onecommit provision --print` writes the statements).",
                strict=True,
            )
    if role.name == schema_owner:
        yield Finding(
            subject=role.name,
            problem="owns the schema and the routines that run as their owner: the profile is single-role",
            remedy="Have a bounded execution owner for these routines.",
            strict=True,
        )


CHECK = Check(
    name="ownership", looks_at="who owns the schema and everything in it", findings=_findings
)
