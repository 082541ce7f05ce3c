"""PUBLIC may do nothing, now or with what is created later."""

from collections.abc import Iterator

from onecommit.doctor.catalog import Catalog
from onecommit.doctor.expected import Expected
from onecommit.doctor.finding import Check, Finding


def _findings(catalog: Catalog, _: Expected) -> Iterator[Finding]:
    for grant in catalog.grants:
        if grant.grantee == "PUBLIC":
            target = f"{grant.object}.{grant.column}" if grant.column else grant.object
            yield Finding(
                subject=target,
                problem=f"{grant.privilege} is granted to PUBLIC: every login of the server has it",
                remedy=f"revoke {grant.privilege.lower()} on this {grant.kind} from public;",
            )


CHECK = Check(
    name="public_grants",
    looks_at="what PUBLIC may do with the schema and everything in it",
    findings=_findings,
)
