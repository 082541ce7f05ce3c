"""Who may install a store, and what a role without rights sees."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from onecommit import errors
from onecommit.schema import SchemaState, apply, ensure_epoch, status

from tests.schema.bundles import INVOICE, TOTAL

pytestmark = pytest.mark.pg


@pytest.fixture
def owner(admin: psycopg.Connection) -> Iterator[str]:
    """An ordinary role that may log in and nothing else."""
    name = f"owner_{uuid.uuid4().hex[:8]}"
    admin.execute(f"create role {name} login password 'throwaway'")
    yield name
    admin.execute(f"drop owned by {name} cascade")
    admin.execute(f"drop role {name}")


@pytest.fixture
def owner_dsn(dsn: str, owner: str) -> str:
    """The empty database, as that role."""
    return make_conninfo(dsn, user=owner, password="throwaway")


def foreign_objects(admin, owner):
    """What the schema holds that does not belong to the role."""
    return admin.execute(
        "select relname from pg_class where relnamespace = 'onecommit'::regnamespace"
        " and relowner <> %(owner)s::regrole"
        " union all select proname from pg_proc where pronamespace = 'onecommit'::regnamespace"
        " and proowner <> %(owner)s::regrole",
        {"owner": owner},
    ).fetchall()


def test_an_ordinary_role_with_create_on_the_database_can_own_the_store(
    dsn, admin, owner, owner_dsn
):
    """It creates the schema, owns every object in it, and runs every command of the schema manager."""
    (database,) = admin.execute("select quote_ident(current_database())").fetchone()
    admin.execute(f"grant create on database {database} to {owner}")
    report = apply(owner_dsn)
    assert foreign_objects(admin, owner) == []
    assert status(owner_dsn) == status(dsn)
    epoch = ensure_epoch(owner_dsn, actor="ada", reason="first deployment")
    assert (epoch.store_id, epoch.epoch) == (report.store_id, status(dsn).active_epoch)
    assert apply(owner_dsn).state is SchemaState.COMPATIBLE


@pytest.mark.parametrize("ownership", ["owns it", "may create in it"])
def test_a_schema_made_by_an_administrator_needs_no_right_on_the_database(
    admin, owner, owner_dsn, write_bundle, ownership
):
    """The role installs and later upgrades a schema that it could not have created."""
    admin.execute("create schema onecommit")
    if ownership == "owns it":
        admin.execute(f"alter schema onecommit owner to {owner}")
    else:
        admin.execute(f"grant usage, create on schema onecommit to {owner}")
    admin.execute("alter default privileges in schema onecommit grant select on tables to public")
    apply(owner_dsn, bundle=write_bundle(INVOICE))
    assert apply(owner_dsn, bundle=write_bundle(INVOICE, TOTAL)).applied_versions == (3,)
    assert foreign_objects(admin, owner) == []


def test_a_role_without_the_right_to_create_is_told_which_one_it_lacks(dsn, owner_dsn):
    """Nothing is created."""
    with pytest.raises(
        errors.CapabilityMissing, match=r"lacks the capability migrator.*CREATE on the database"
    ):
        apply(owner_dsn)
    assert status(dsn).state is SchemaState.MISSING


def test_a_role_that_may_not_read_the_store_is_told_so(dsn, owner_dsn):
    """The status of a stranger's schema is an error, not a wrong state."""
    apply(dsn)
    with pytest.raises(errors.CapabilityMissing, match="lacks the capability reader"):
        status(owner_dsn)
