"""Applying migrations and routines."""

from uuid import UUID

import pytest

from onecommit import errors
from onecommit.schema import SchemaState, apply, packaged_bundle, status

from tests.schema.bundles import ANSWER, INVOICE, TOTAL, function
from tests.schema.observation import catalog

pytestmark = pytest.mark.pg


def test_an_empty_database_gets_everything(dsn, admin):
    """All migrations and all routines, under the version that the package carries."""
    report = apply(dsn)
    bundle = packaged_bundle()
    assert report.state is SchemaState.COMPATIBLE
    assert report.applied_versions == tuple(range(1, bundle.version + 1))
    assert report.routines_installed
    names = admin.execute(
        "select proname from pg_proc where pronamespace = 'onecommit'::regnamespace"
    )
    assert {routine.name for routine in bundle.routines} <= {name for (name,) in names}
    assert admin.execute("select schema_version from onecommit.store_status()").fetchone() == (
        bundle.version,
    )


def test_the_second_run_changes_nothing(dsn, admin):
    """Not one row of the catalog is touched, and the StoreId stays."""
    first = apply(dsn)
    before = catalog(admin)
    second = apply(dsn)
    assert catalog(admin) == before
    assert (second.applied_versions, second.routines_installed) == ((), False)
    assert second.store_id == first.store_id


def test_an_older_schema_gets_only_what_it_lacks(dsn, admin, write_bundle):
    """The pending migrations run in order, the data stays, the routines are replaced."""
    first = apply(dsn, bundle=write_bundle(INVOICE))
    admin.execute("insert into onecommit.invoice values (1)")
    newer = write_bundle(INVOICE, TOTAL, routines={"store/answer": function("answer", 43)})
    assert status(dsn, bundle=newer).state is SchemaState.UPGRADE_REQUIRED
    report = apply(dsn, bundle=newer)
    assert report.applied_versions == (3,)
    assert report.store_id == first.store_id
    assert admin.execute("select id, total from onecommit.invoice").fetchall() == [(1, None)]
    assert admin.execute("select onecommit.answer()").fetchone() == (43,)


def test_changed_routines_are_installed_without_a_migration(dsn, admin, write_bundle):
    """A release that changes only functions needs no new version."""
    apply(dsn, bundle=write_bundle())
    newer = write_bundle(routines={"store/answer": function("answer", 43)})
    assert status(dsn, bundle=newer).state is SchemaState.UPGRADE_REQUIRED
    report = apply(dsn, bundle=newer)
    assert (report.applied_versions, report.routines_installed) == ((), True)
    assert admin.execute("select onecommit.answer()").fetchone() == (43,)


def test_a_vanished_routine_is_dropped_only_if_the_bundle_lists_it(dsn, admin, write_bundle):
    """Its exact signature is dropped, in the transaction that installs the others."""
    routines = {"store/old": function("old", 1, "n bigint"), "store/kept": function("kept", 1)}
    apply(dsn, bundle=write_bundle(routines=ANSWER | routines))
    apply(dsn, bundle=write_bundle(dropped="# since 0.2\nold(bigint)\n"))
    names = admin.execute(
        "select proname::text from pg_proc where pronamespace = 'onecommit'::regnamespace order by 1"
    ).fetchall()
    assert names == [("answer",), ("kept",)]


def test_grants_outlive_the_replacement_of_a_routine(dsn, admin, write_bundle):
    """Replacing keeps the ACL: a role that could call the function still can, PUBLIC still cannot."""
    apply(dsn, bundle=write_bundle())
    admin.execute("drop role if exists schema_caller")
    admin.execute("create role schema_caller")
    try:
        admin.execute("grant execute on function onecommit.answer() to schema_caller")
        acl = "select proacl::text from pg_proc where proname = 'answer'"
        before = admin.execute(acl).fetchone()
        apply(dsn, bundle=write_bundle(routines={"store/answer": function("answer", 43)}))
        assert admin.execute("select onecommit.answer()").fetchone() == (43,)
        assert admin.execute(acl).fetchone() == before
    finally:
        admin.execute("drop owned by schema_caller")
        admin.execute("drop role schema_caller")


def test_public_may_execute_nothing(dsn, admin):
    """No function or procedure, helpers of the migrations included, is open to PUBLIC; nor is the schema."""
    apply(dsn)
    opened = admin.execute(
        "select p.oid::regprocedure from pg_proc p,"
        " aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a"
        " where p.pronamespace = 'onecommit'::regnamespace and a.grantee = 0"
        " union all select null from pg_namespace n,"
        " aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a"
        " where n.nspname = 'onecommit' and a.grantee = 0"
    ).fetchall()
    assert opened == []


def test_public_may_execute_nothing_between_two_migrations(dsn, admin, write_bundle):
    """The transaction that creates a function revokes it, even if the next step fails."""
    helper = 'create function "@schema@".helper() returns integer language sql as $$ select 1 $$;\n'
    with pytest.raises(errors.SchemaError):
        apply(dsn, bundle=write_bundle(helper, "select 1 / 0;\n"))
    query = "select has_function_privilege('public', 'onecommit.helper()', 'execute')"
    assert admin.execute(query).fetchone() == (False,)


def test_public_gets_nothing_by_an_administrators_default_privileges(dsn, admin):
    """Whatever the server or an administrator gives PUBLIC on new objects is taken back in the same transaction."""
    admin.execute("create schema onecommit")
    for kind in ("tables", "sequences", "routines"):
        admin.execute(f"alter default privileges in schema onecommit grant all on {kind} to public")
    apply(dsn)
    opened = admin.execute(
        "select c.relname from pg_class c, aclexplode(c.relacl) a"
        " where c.relnamespace = 'onecommit'::regnamespace and a.grantee = 0"
        " union all select p.proname from pg_proc p, aclexplode(p.proacl) a"
        " where p.pronamespace = 'onecommit'::regnamespace and a.grantee = 0"
        " union all select t.typname from pg_type t,"
        " aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a"
        " where t.typnamespace = 'onecommit'::regnamespace and t.typtype <> 'b' and a.grantee = 0"
    ).fetchall()
    assert opened == []


def test_a_failing_migration_leaves_the_version_before_it(dsn, write_bundle):
    """Each migration is one transaction; a corrected package continues from there."""
    with pytest.raises(errors.SchemaError, match="22012"):
        apply(dsn, bundle=write_bundle(INVOICE + "select 1 / 0;\n"))
    good = write_bundle(INVOICE)
    assert status(dsn, bundle=good).installed_version == 1
    assert apply(dsn, bundle=good).applied_versions == (2,)


def test_a_changed_history_is_refused_before_any_change(dsn, admin, write_bundle):
    """A migration whose text is not the one applied: inconsistent, and nothing is touched."""
    apply(dsn, bundle=write_bundle(INVOICE))
    before = catalog(admin)
    tampered = write_bundle("-- changed after release\n" + INVOICE, TOTAL)
    with pytest.raises(errors.SchemaInconsistent, match="migration 2"):
        apply(dsn, bundle=tampered)
    assert catalog(admin) == before


def test_a_lost_table_is_refused_before_any_change(dsn, admin, write_bundle):
    """A table that the history promises and the database lacks: inconsistent."""
    apply(dsn, bundle=write_bundle(INVOICE))
    admin.execute("drop table onecommit.invoice")
    before = catalog(admin)
    with pytest.raises(errors.SchemaInconsistent, match="invoice"):
        apply(dsn, bundle=write_bundle(INVOICE, TOTAL))
    assert catalog(admin) == before


def test_a_newer_schema_is_refused_before_any_change(dsn, admin, write_bundle):
    """An older package never touches what it does not know."""
    apply(dsn, bundle=write_bundle(INVOICE, TOTAL))
    before = catalog(admin)
    with pytest.raises(errors.SchemaTooNew, match="at version 3, this package knows 2"):
        apply(dsn, bundle=write_bundle(INVOICE))
    assert catalog(admin) == before


def test_a_newer_schema_that_declares_itself_open_is_left_alone(dsn, admin, write_bundle):
    """writer_min of store_status says that older packages may go on; they migrate nothing."""
    open_to_all = (
        'create or replace function "@schema@".store_status() returns table (writer_min integer)\n'
        "language sql as $$ select 2 $$;\n"
    )
    newer = write_bundle(INVOICE, TOTAL, routines={"store/store_status": open_to_all})
    apply(dsn, bundle=newer)
    before = catalog(admin)
    assert apply(dsn, bundle=write_bundle(INVOICE)).state is SchemaState.COMPATIBLE
    with pytest.raises(errors.SchemaTooNew):
        apply(dsn, bundle=write_bundle())
    assert catalog(admin) == before


def test_an_older_release_does_not_take_routines_back(dsn, admin, write_bundle):
    """At equal versions the routines of the newest release stay, or a rolling deployment would flap."""
    apply(
        dsn,
        bundle=write_bundle(routines={"store/answer": function("answer", 43)}, release="0.10.0"),
    )
    report = apply(dsn, bundle=write_bundle(release="0.9.1"))
    assert (report.state, report.routines_installed) == (SchemaState.COMPATIBLE, False)
    assert admin.execute("select onecommit.answer()").fetchone() == (43,)


def test_a_routine_changed_by_hand_is_reported_and_left_until_asked(dsn, admin):
    """The status names it, a run refuses before any change, and an explicit wish overwrites it."""
    apply(dsn)
    admin.execute(
        "create or replace function onecommit.store_now() returns timestamptz"
        " language sql volatile parallel safe as $$ select now() $$"
    )
    before = catalog(admin)
    assert status(dsn).changed_routines == ("store_now",)
    with pytest.raises(errors.SchemaInconsistent, match=r"store_now.*--reinstall-routines"):
        apply(dsn)
    assert catalog(admin) == before
    assert apply(dsn, reinstall_routines=True).state is SchemaState.COMPATIBLE
    assert status(dsn).changed_routines == ()


def test_an_overload_beside_a_routine_is_inconsistent(dsn, admin):
    """A second function of the same name could catch calls that are meant for ours."""
    apply(dsn)
    admin.execute(
        "create function onecommit.store_now(a integer) returns integer language sql return a"
    )
    assert status(dsn).changed_routines == ("store_now",)


def test_a_schema_of_somebody_else_is_refused(dsn, admin):
    """A schema that holds objects but no history of ours is not touched."""
    admin.execute("create schema onecommit")
    admin.execute("create function onecommit.f() returns integer language sql return 1")
    before = catalog(admin)
    assert status(dsn).state is SchemaState.INCONSISTENT
    with pytest.raises(errors.SchemaInconsistent, match="no migration history"):
        apply(dsn)
    assert catalog(admin) == before


def test_tables_of_our_names_that_are_not_ours_are_refused(dsn, admin):
    """A foreign schema_migration gives a clear error, not a database error."""
    admin.execute("create schema onecommit")
    admin.execute("create table onecommit.schema_migration (id text)")
    with pytest.raises(errors.SchemaInconsistent, match="not ours"):
        apply(dsn)


def test_another_store_is_refused_before_any_change(dsn, admin, write_bundle):
    """A deployment that names its StoreId neither migrates another store nor creates a new one."""
    store_id = UUID(int=1)
    with pytest.raises(errors.StoreMismatch, match="holds none"):
        apply(dsn, store_id=store_id)
    assert status(dsn).state is SchemaState.MISSING
    report = apply(dsn, bundle=write_bundle())
    with pytest.raises(errors.StoreMismatch, match=str(report.store_id)):
        apply(dsn, bundle=write_bundle(INVOICE), store_id=store_id)
    assert status(dsn).installed_version == 1
    assert apply(dsn, bundle=write_bundle(INVOICE), store_id=report.store_id).installed_version == 2


@pytest.mark.parametrize("name", ["we ird", "Mixed-Case.1"])
def test_any_accepted_schema_name_carries_a_whole_store(dsn, admin, name):
    """The store installs, reports itself, and two stores live side by side in one database."""
    other = apply(dsn)
    report = apply(dsn, schema=name)
    assert status(dsn, schema=name).state is SchemaState.COMPATIBLE
    assert status(dsn).store_id == other.store_id != report.store_id
    row = admin.execute(f'select store_id from "{name}".store_status()').fetchone()
    assert row == (report.store_id,)


def test_settings_of_the_database_do_not_get_in_the_way(dsn, admin):
    """A hostile default isolation, read-only mode, timeout or search_path is set aside for the run."""
    (name,) = admin.execute("select quote_ident(current_database())").fetchone()
    for setting in (
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "statement_timeout = '50ms'",
        "idle_in_transaction_session_timeout = '50ms'",
        "search_path = onecommit, public",
    ):
        admin.execute(f"alter database {name} set {setting}")
    assert apply(dsn).state is SchemaState.COMPATIBLE
