"""The migration as a text: made without a connection, equal in effect to `apply`."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from onecommit import errors
from onecommit.schema import SchemaState, apply, script, status

from tests.schema.bundles import INVOICE, TOTAL, function
from tests.schema.observation import catalog

Program = Callable[[str], Path]


def run_script(program: Program, dsn: str, text: str) -> str:
    """Feed psql, which goes on after errors here; returns what it says about them."""
    ended = subprocess.run(
        [program("psql"), "--no-psqlrc", "--quiet", "--dbname", dsn],
        input=text, text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return ended.stderr


def dump(program: Program, dsn: str) -> str:
    """The whole schema with owners and grants, as pg_dump writes it."""
    text = subprocess.check_output(
        [program("pg_dump"), "--schema-only", "--dbname", dsn], text=True, timeout=60
    )
    return "\n".join(line for line in text.splitlines() if "restrict " not in line)


def recorded(admin):
    """The history and the routines' record, without times."""
    return (
        admin.execute(
            "select version, name, sha256, applied_by from onecommit.schema_migration order by 1"
        ).fetchall(),
        admin.execute(
            "select package_version, routines_sha256 from onecommit.routine_install"
        ).fetchall(),
    )


@pytest.mark.pg
def test_the_script_and_apply_make_the_same_schema(dsn, admin, program):
    """Tables, functions, owners, grants and history: pg_dump sees no difference."""
    apply(dsn)
    applied, history = dump(program, dsn), recorded(admin)
    admin.execute("drop schema onecommit cascade")
    assert run_script(program, dsn, script()) == ""
    assert dump(program, dsn) == applied
    assert recorded(admin) == history
    assert status(dsn).state is SchemaState.COMPATIBLE


@pytest.mark.pg
def test_a_script_from_an_installed_version_holds_what_is_pending(
    dsn, admin, program, write_bundle
):
    """It brings an older schema to where `apply` brings it."""
    older = write_bundle(INVOICE)
    newer = write_bundle(INVOICE, TOTAL, routines={"store/answer": function("answer", 43)})
    apply(dsn, bundle=older)
    apply(dsn, bundle=newer)
    applied = dump(program, dsn)
    admin.execute("drop schema onecommit cascade")
    apply(dsn, bundle=older)
    text = script(2, bundle=newer)
    assert "create table" not in text
    assert run_script(program, dsn, text) == ""
    assert dump(program, dsn) == applied
    assert status(dsn, bundle=newer).state is SchemaState.COMPATIBLE


@pytest.mark.pg
@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_a_script_that_expects_another_version_changes_nothing(
    dsn, admin, program, write_bundle, start
):
    """A second run, and a run on the wrong database, fail in each of their transactions."""
    bundle = write_bundle(INVOICE, TOTAL)
    apply(dsn, bundle=bundle)
    before = catalog(admin)
    complaints = run_script(program, dsn, script(start, bundle=bundle))
    assert "is not" in complaints
    assert catalog(admin) == before


@pytest.mark.pg
@pytest.mark.parametrize(
    "installed", [(), ("-- another text\n" + INVOICE,)], ids=["older", "other"]
)
def test_a_script_does_not_build_on_a_history_that_it_does_not_expect(
    dsn, admin, program, write_bundle, installed
):
    """Even a migration that would succeed there is refused."""
    extra = 'create table "@schema@".extra ();\n'
    apply(dsn, bundle=write_bundle(*installed))
    before = catalog(admin)
    text = script(2, bundle=write_bundle(INVOICE, extra))
    assert "migration history is not the expected one" in run_script(program, dsn, text)
    assert catalog(admin) == before


@pytest.mark.pg
def test_a_script_for_an_awkward_schema_name_installs_it(dsn, program):
    """The name is quoted everywhere in the script too."""
    assert run_script(program, dsn, script(schema="we ird")) == ""
    assert status(dsn, schema="we ird").state is SchemaState.COMPATIBLE


@pytest.mark.pg
def test_a_script_can_fill_a_schema_that_an_administrator_made(dsn, admin, program):
    """An empty schema is used as it is."""
    admin.execute("create schema onecommit")
    assert run_script(program, dsn, script()) == ""
    assert status(dsn).state is SchemaState.COMPATIBLE


def test_the_same_arguments_give_the_same_text(write_bundle):
    """No clock, no random number, no environment: a reviewed script is the script that runs."""
    bundle = write_bundle(INVOICE)
    assert script(1, bundle=bundle) == script(1, bundle=bundle)
    assert script(1, bundle=bundle) != script(1, bundle=bundle, schema="other")


def test_a_script_to_the_version_that_is_installed_installs_the_routines_only(write_bundle):
    """A release with the same tables still brings its functions."""
    text = script(2, bundle=write_bundle(INVOICE))
    assert 'insert into "onecommit".schema_migration' not in text
    assert "create or replace function" in text


@pytest.mark.parametrize("version", [-1, 3])
def test_a_script_from_an_unknown_version_is_refused(write_bundle, version):
    """The error names the versions that this package knows."""
    with pytest.raises(errors.InvalidArgument, match="knows 0 to 2"):
        script(version, bundle=write_bundle(INVOICE))
