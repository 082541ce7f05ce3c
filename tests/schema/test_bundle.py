"""What is read from the packaged SQL files."""

import hashlib
import re

import pytest

from onecommit.schema import packaged_bundle, read_bundle

from tests.schema.bundles import INVOICE, TOTAL, function


def test_a_migration_is_known_by_the_hash_of_its_unrendered_file(write_bundle):
    """The hash does not depend on the schema's name."""
    migration = write_bundle(INVOICE).migrations[1]
    assert (migration.version, migration.name) == (2, "step2")
    assert migration.sha256 == hashlib.sha256(INVOICE.encode()).hexdigest()


def test_routines_come_area_by_area_and_by_name(write_bundle):
    """Store before jobs, alphabetically within."""
    names = ["jobs/a", "store/b", "store/a"]
    bundle = write_bundle(routines={name: function(name[-1], 1) for name in names})
    assert [f"{r.area}/{r.name}" for r in bundle.routines] == ["store/a", "store/b", "jobs/a"]


def test_any_change_of_a_routine_changes_the_hash_of_all(write_bundle):
    """A body, a name, an area and a dropped signature all count."""
    bundles = [
        write_bundle(routines={"store/a": function("a", 1)}),
        write_bundle(routines={"store/a": function("a", 2)}),
        write_bundle(routines={"store/b": function("b", 1)}),
        write_bundle(routines={"jobs/a": function("a", 1)}),
        write_bundle(routines={"store/a": function("a", 1)}, dropped="old(bigint)\n"),
    ]
    assert len({bundle.routines_sha256 for bundle in bundles}) == len(bundles)


def test_the_tables_of_a_version_follow_its_migrations(write_bundle):
    """A table that a later migration drops is not expected after it."""
    bundle = write_bundle(INVOICE, TOTAL, 'drop table "@schema@".invoice;\n')
    assert "store_metadata" in bundle.tables(1)
    assert "invoice" not in bundle.tables(1)
    assert "invoice" in bundle.tables(3)
    assert "invoice" not in bundle.tables(4)


@pytest.mark.parametrize(
    ("file", "text", "refusal"),
    [
        ("migrations/0003_gap.sql", "", "0003 must follow 0002"),
        ("migrations/two.sql", "", "two.sql is not named like"),
        ("routines/other/f.sql", function("f", 1), "unknown folder other"),
        ("routines/store/f.sql", function("g", 1), "must create exactly f"),
        ("routines/store/f.sql", function("f", 1) + function("f", 2), "must create exactly f"),
        (
            "routines/store/f.sql",
            'create or replace function "@schema@".f() return 1;',
            "no dollar",
        ),
    ],
)
def test_a_bundle_that_breaks_the_rules_is_refused_by_file_name(
    write_bundle, tmp_path, file, text, refusal
):
    """A mistake in the SQL files is found when they are read."""
    write_bundle()
    target = tmp_path / "bundle_1" / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    with pytest.raises(ValueError, match=re.escape(refusal)):
        read_bundle(tmp_path / "bundle_1")


def test_the_packaged_files_keep_the_rules():
    """They read, they are ASCII (a database may have any encoding), and they leave transactions alone."""
    bundle = packaged_bundle()
    texts = [item.text for item in (*bundle.migrations, *bundle.routines)]
    assert all(text.isascii() for text in texts)
    assert not any(
        re.search(r"^\s*(commit|rollback|begin)\s*;", text, re.MULTILINE | re.IGNORECASE)
        for text in texts
    )
    assert {"store_metadata", "schema_migration", "routine_install"} <= bundle.tables(1)


def test_a_breaking_migration_names_an_earlier_version(write_bundle):
    """No package could pass a fence at a version that its own migration only makes."""
    assert write_bundle("-- writer_min: 1\n" + INVOICE).migrations[1].writer_min == 1
    assert write_bundle(INVOICE).migrations[1].writer_min is None
    with pytest.raises(ValueError, match="earlier version"):
        write_bundle("-- writer_min: 2\n" + INVOICE)
