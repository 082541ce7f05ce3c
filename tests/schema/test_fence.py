"""A migration that breaks older packages runs only where the store has been fenced against them."""

from dataclasses import replace

import psycopg
import pytest

from onecommit import errors
from onecommit.schema import (
    Bundle,
    apply,
    fence_writers,
    initialize_epoch,
    packaged_bundle,
    script,
    status,
)
from onecommit.schema.bundle import Migration

from tests.schema.observation import catalog
from tests.schema.test_commands import run
from tests.upgrade import release

pytestmark = pytest.mark.pg

VERSION = packaged_bundle().version
BREAKING = f'-- writer_min: {VERSION}\ndrop table "@schema@".later;\n'


def later(*texts: str) -> Bundle:
    """The packaged bundle with a table more, and these migrations after it."""
    bundle = packaged_bundle()
    steps = ('create table "@schema@".later (n integer);\n', *texts)
    added = [
        Migration(
            version=VERSION + n,
            name=f"step{n}",
            text=text,
            sha256=f"{n:064}",
            writer_min=VERSION if text == BREAKING else None,
        )
        for n, text in enumerate(steps, 1)
    ]
    migrations = (*bundle.migrations, *added)
    return replace(bundle, package_version="9.0.0", migrations=migrations, routines_sha256="9" * 64)


@pytest.fixture
def used(dsn: str) -> str:
    """A store of this version that has an epoch, so that processes may use it."""
    apply(dsn)
    initialize_epoch(dsn, actor="me", reason="test")
    return dsn


def test_a_breaking_migration_waits_for_the_fence(used: str, admin: psycopg.Connection):
    """Refused with everything that was pending before it; after the fence it runs, and its need is recorded."""
    before = catalog(admin)
    with pytest.raises(errors.SchemaError, match=r"step2.*nothing was changed.*`onecommit fence`"):
        apply(used, bundle=later(BREAKING))
    assert catalog(admin) == before
    fence_writers(used, actor="me", reason="test")
    assert apply(used, bundle=later(BREAKING)).applied_versions == (VERSION + 1, VERSION + 2)
    assert status(used).writer_min == VERSION
    with pytest.raises(errors.StateRefused, match="breaks packages"):
        fence_writers(used, actor="me", reason="test", writer_min=VERSION - 1)


def test_a_script_waits_for_the_fence_too(used: str, admin: psycopg.Connection):
    """It cannot ask beforehand, so its own step refuses."""
    text = script(VERSION, bundle=later(BREAKING))
    with pytest.raises(psycopg.Error, match="breaks packages") as refused:
        admin.execute(text)
    assert refused.value.sqlstate == "OC010"
    admin.execute("rollback")
    assert status(used).installed_version == VERSION + 1
    fence_writers(used, actor="me", reason="test", writer_min=VERSION)
    admin.execute(script(VERSION + 1, bundle=later(BREAKING)))
    assert status(used).installed_version == VERSION + 2


def test_a_new_store_needs_no_fence(dsn: str):
    """Nobody could write to it before, and older packages are refused from its first moment."""
    apply(dsn, bundle=later(BREAKING))
    assert status(dsn).writer_min == VERSION


def test_a_pending_migration_does_not_keep_from_fencing(used: str, admin: psycopg.Connection):
    """The package of the next release can raise the fence that its own migration needs."""
    admin.execute("update onecommit.routine_install set routines_sha256 = repeat('0', 64)")
    assert fence_writers(used, actor="me", reason="test").writer_min == VERSION


def test_a_store_of_the_previous_release_is_migrated_first(dsn: str):
    """It has no such function yet."""
    apply(dsn, bundle=release.bundle())
    with pytest.raises(errors.SchemaError, match="onecommit migrate"):
        fence_writers(dsn, actor="me", reason="test")


def test_the_command(used: str, admin: psycopg.Connection):
    """It asks, names the workers in the way, ends them if told to, and status shows what the store accepts."""
    admin.execute(
        "select onecommit.register_worker('old', '{}', active_epoch) from onecommit.store_status()"
    )
    said = ("fence", "--actor", "me", "--reason", "test")
    assert run(*said, ONECOMMIT_DSN=used).returncode == 1
    assert "from schema version 1 on" in run("status", ONECOMMIT_DSN=used).stdout
    refused = run(*said, "--yes", ONECOMMIT_DSN=used)
    assert (refused.returncode, "alive: old" in refused.stderr) == (1, True)
    assert "Traceback" not in refused.stderr
    forced = run(*said, "--yes", "--force", ONECOMMIT_DSN=used)
    assert forced.stdout.splitlines() == [
        f"writers from schema version {VERSION} on; older ones are refused",
        "ended: old (0 jobs rescued)",
    ]
    assert f"from schema version {VERSION} on" in run("status", ONECOMMIT_DSN=used).stdout
    back = run(*said, "--yes", "--writer-min", "1", ONECOMMIT_DSN=used)
    assert "from schema version 1 on" in back.stdout
