"""Whoever can become an owner of the store, by whatever chain of roles, is named; whoever cannot has nothing by it."""

from collections.abc import Iterator
from itertools import product

import psycopg
import pytest

from tests.attacks.intruders import Target, under_attack
from tests.catalog import routines
from tests.catalog.test_strict_profile import CALLS, REFUSED, STATEMENTS, refused
from tests.clusters import Cluster
from tests.doctor.examinations import patient, told
from tests.schema.provisioned import PASSWORD

pytestmark = pytest.mark.pg

OPTIONS_SINCE = 16
# A login app{k} → two{k} → one{k} → the owner of the definers, each step with its own options; a producer besides.
CHAIN = """
create role one{k}; create role two{k}; create role app{k} login in role {producer};
grant {owner} to one{k} {a}; grant one{k} to two{k} {b}; grant two{k} to app{k} {c};
"""
# What the login makes of it: as itself and as whomever it may become, it takes what it may grant; at last it tries.
CLIMB = """
do $climb$
declare
    v_actor text;
    v_role text;
begin
    for v_round in 1..3 loop
        foreach v_actor in array array['app{k}', 'two{k}', 'one{k}'] loop
            foreach v_role in array array['two{k}', 'one{k}', '{owner}'] loop
                begin
                    execute format('set local role %I', v_actor);
                    execute format('grant %I to app{k}', v_role);
                    reset role;
                exception when others then
                    reset role;
                end;
            end loop;
        end loop;
    end loop;
end $climb$
"""
# As one of the roles that it may become it has, by itself or inherited, what the owner has.
REACHED = """
select bool_or((r = 'app{k}' or pg_has_role('app{k}', r, '{set}')) and pg_has_role(r, '{owner}', 'usage'))
from unnest(array['app{k}', 'two{k}', 'one{k}', '{owner}']::name[]) r
"""


@pytest.fixture(scope="module")
def target(gate_postgres: Cluster) -> Iterator[Target]:
    """On 16 as well, where memberships got their options."""
    with under_attack(gate_postgres) as target:
        yield target


def options(major: int) -> list[str]:
    """Of one membership; before 16 there is one, and who inherits says so itself."""
    if major < OPTIONS_SINCE:
        return ["", "with admin option"]
    return [
        f"with inherit {inherit}, set {set_}, admin {admin}"
        for inherit, set_, admin in product(("true", "false"), repeat=3)
    ]


def test_every_chain_that_leads_to_an_owner_is_named_and_no_other(target: Target):
    """All options of all three steps at once; the measure is what the login then really gets."""
    owner, producer = target.store.role("execution"), target.store.role("producer")
    chains = list(enumerate(product(options(target.major), repeat=3)))
    set_ = "set" if target.major >= OPTIONS_SINCE else "member"
    with patient(target.admin) as store:
        for k, (a, b, c) in chains:
            store.do(CHAIN.format(k=k, owner=owner, producer=producer, a=a, b=b, c=c))
        lines = told(store.examine(strict=True))
        named = {
            int(line.split()[1][3:])
            for line in lines
            if line.startswith("runtime_roles: app") and f"can become {owner}" in line
        }
        reached = set()
        for k, _ in chains:
            store.do(
                f"set local session authorization app{k}",
                CLIMB.format(k=k, owner=owner),
                "reset session authorization",
            )
            [(yes,)] = target.admin.execute(REACHED.format(k=k, owner=owner, set=set_)).fetchall()
            reached |= {k} if yes else set()
    assert reached
    assert target.major < OPTIONS_SINCE or len(reached) < len(chains)
    assert {chains[k] for k in named ^ reached} == set()


@pytest.mark.parametrize(
    "inherits", [(a, b, c) for a, b, c in product(("inherit", "noinherit"), repeat=3)], ids="-".join
)
def test_a_chain_without_options_is_named_whoever_inherits(
    target: Target, inherits: tuple[str, str, str]
):
    """NOINHERIT keeps nobody from SET ROLE; which of them inherit only says how."""
    owner, producer = target.store.role("execution"), target.store.role("producer")
    a, b, c = inherits
    with patient(target.admin) as store:
        store.do(
            f"create role one {a}", f"create role two {b}", f"create role app login {c}",
            f"grant {producer} to app", f"grant {owner} to one", "grant one to two", "grant two to app",
        )  # fmt: skip
        lines = told(store.examine(strict=True))
        said = f"app can become {owner}, an owner of the store, by app → two (set) → one (set) → {owner} (set)"
        assert any(said in line for line in lines), lines
        store.do("set local session authorization app", f"set local role {owner}")
        assert store.connection.execute("select count(*) from onecommit.ready").fetchone() == (0,)


WAYS = {
    "inherited": ("inherit true, set false", True),
    "set only": ("inherit false, set true", False),
    "neither": ("inherit false, set false", False),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("capability", ["producer", "work_runtime", "reader"])
def test_two_roles_away_a_capability_is_what_it_is_and_no_more(
    target: Target, capability: str, way: str
):
    """Every statement and every routine, as a login that the chain gives the capability, or does not."""
    if target.major < OPTIONS_SINCE:
        pytest.skip("memberships have options from PostgreSQL 16 on")
    option, has = WAYS[way]
    names = {
        "app": f"app_{target.store.database.name}",
        "one": f"one_{target.store.database.name}",
        "two": f"two_{target.store.database.name}",
    }
    target.do(
        *(
            f"create role {role} {'login password ' + chr(39) + PASSWORD + chr(39) if n == 'app' else ''}"
            for n, role in names.items()
        ),
        f"grant {target.store.role(capability)} to {names['one']} with {option}",
        f"grant {names['one']} to {names['two']} with {option}",
        f"grant {names['two']} to {names['app']} with {option}",
    )
    try:
        dsn = psycopg.conninfo.make_conninfo(
            target.store.database.dsn, user=names["app"], password=PASSWORD
        )
        with psycopg.connect(dsn, autocommit=True) as session:
            session.execute(REFUSED)
            called, touched = reach_of(session, target)
            owners = [target.store.role(each) for each in ("execution", "migrator")]
            assert all(refused(session, [f"set role {role}" for role in owners]))
    finally:
        target.do(
            *(f"drop owned by {role}" for role in names.values()),
            *(f"drop role {role}" for role in names.values()),
        )
    # Without a scope row-level security refuses what these two write, with the same SQLSTATE.
    granted = {
        n
        for n, e in routines.capabilities().items()
        if capability in e["grants"] and n not in ("quarantine", "write_work_history")
    }
    # An insert of our form reads too, so what may only be inserted is refused.
    stated = routines.tables().get(capability, {})
    tables = {table for table, privileges in stated.items() if privileges != ["insert"]}
    assert called == (granted if has else set())
    assert touched == (tables if has else set())


def reach_of(session: psycopg.Connection, target: Target) -> tuple[set[str], set[str]]:
    """The routines and the tables that this session gets at."""
    calls = dict(target.admin.execute(CALLS).fetchall())
    answers = refused(session, list(calls.values()))
    routines_ = {name for name, was in zip(calls, answers, strict=True) if not was}
    cells = target.admin.execute(STATEMENTS).fetchall()
    answers = refused(session, [statement for _, _, statement, _ in cells])
    return routines_, {cell[0] for cell, was in zip(cells, answers, strict=True) if not was}
