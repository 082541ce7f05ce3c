"""Every bad argument is refused by the name of its field, says nothing of its value, and leaves nothing behind."""

import json
import re

import psycopg
import pytest

from tests.engine import Engine
from tests.stores import Store

pytestmark = pytest.mark.pg

SECRET = "hunter2"
LONG = SECRET + "x" * 300
MEGABYTE = 1 << 20

ENQUEUE = {
    # what is wrong: (field named, arguments of Engine.enqueue)
    "queue empty": ("queue", {"queue": ""}),
    "queue too long": ("queue", {"queue": LONG}),
    "kind empty": ("kind", {"kinds": [""]}),
    "kind too long": ("kind", {"kinds": [LONG]}),
    "kind null": ("kind", {"kinds": [None]}),
    "one of several kinds empty": ("kind", {"count": 2, "kinds": ["k", ""]}),
    "no kinds": ("kinds", {"kinds": []}),
    "kinds and args differ": ("kinds", {"count": 3, "kinds": ["a", "b"]}),
    "no args": ("args", {"args": []}),
    "args null": ("args", {"args": [None]}),
    "args not JSON": ("args", {"args": [f'{{"{SECRET}": ']}),
    "args a bare word": ("args", {"args": [SECRET]}),
    "args empty text": ("args", {"args": [""]}),
    "args NaN": ("args", {"args": [f'{{"{SECRET}": NaN}}']}),
    "args Infinity": ("args", {"args": [f'["{SECRET}", -Infinity]']}),
    "args NUL": ("args", {"args": [f'{{"a": "{SECRET}\\u0000"}}']}),
    "args NUL in a key": ("args", {"args": [f'{{"{SECRET}\\u0000": 1}}']}),
    "args high surrogate": ("args", {"args": [f'{{"a": "{SECRET}\\ud800"}}']}),
    "args low surrogate": ("args", {"args": [f'{{"a": "{SECRET}\\udc00"}}']}),
    "args reversed pair": ("args", {"args": [f'{{"a": "{SECRET}\\ude00\\ud83d"}}']}),
    "args too large": ("args", {"args": [json.dumps(SECRET + "x" * MEGABYTE)]}),
    "args too large in bytes": (
        "args",
        {"args": [json.dumps("ü" * (MEGABYTE // 2), ensure_ascii=False)]},
    ),
    "the third of five": ("args[3]", {"args": ["1", "2", f'"{SECRET}\\u0000"', "4", '"\\u0000"']}),
    "one of several not JSON": ("args", {"args": ["1", f"{{{SECRET}", "3"]}),
    "options a number": ("options", {"options": 3}),
    "options a string": ("options", {"options": SECRET}),
    "options a string like a key": ("options", {"options": "unique"}),
    "options too few": ("options", {"count": 2, "options": [{}]}),
    "options too many": ("options", {"options": [{}, {}]}),
    "options of a job a number": ("options", {"options": [1]}),
    "options of a job null": ("options", {"count": 2, "options": [None, SECRET]}),
    "options too large": ("options", {"options": {"meta": {"a": SECRET + "x" * MEGABYTE}}}),
    "unknown option": ("options", {"options": {"colour": SECRET}}),
    "unknown option of a job": ("options", {"options": [{"colour": SECRET}]}),
    "unknown option beside others": (
        "options",
        {"options": {"priority": 1, "tags": [], SECRET: 1}},
    ),
}
OPTIONS = {
    # field: values that must be refused
    "priority": [0, 5, -1, 1.5, "1", SECRET, [1], {}, True, 1e99],
    "max_attempts": [0, 32768, -1, 1.5, SECRET, 1e99],
    "delay_us": [-1, 0.5, SECRET, 1e99, True],
    "timeout_us": [0, -1, 0.5, SECRET, 1e99],
    "run_at": [
        SECRET, "", "tomorrow", "now", "infinity", "2030-01-01", "2030-01-01T00:00:00", "01/02/2030 00:00Z", 5, True, [], {},
        "2030-13-01T00:00:00Z", "2030-02-30T00:00:00Z", "2030-01-01T25:00:00Z", "2030-01-01T00:00:00+99:99", "999999-01-01T00:00:00Z", "9999-01-01T00:00:01Z", "1969-12-31T23:59:59Z",
    ],
    "unique": [
        SECRET, 5, [], {}, True, {"key": None}, {"key": ""}, {"key": SECRET}, {"key": "abc"}, {"key": "AB"}, {"key": "ab" * 65}, {"key": 12},
        {"key": "ab", "colour": SECRET},
    ],
    "window_us": [{"key": "ab", "window_us": value} for value in (0, -1, 0.5, SECRET, 1e99)],
    "tags": [SECRET, 5, {}, [5], [None], [[SECRET]]],
    "trace": [SECRET, 5, []],
    "meta": [SECRET, 5, []],
}  # fmt: skip
OPTION_CASES = [(field, value) for field, values in OPTIONS.items() for value in values]


def refused(call, *args, **kwargs) -> psycopg.Error:
    """The refusal, which must not carry the marker anywhere."""
    with pytest.raises(psycopg.Error) as caught:
        call(*args, **kwargs)
    diag = caught.value.diag
    for part in (diag.message_primary, diag.message_detail, diag.message_hint, diag.context):
        assert SECRET not in (part or "")
    return caught.value


def assert_untouched(engine: Engine) -> None:
    """Neither jobs nor queues came into being."""
    tables = ("ready", "scheduled", "unique_key", "queue", "progress", "worker", "operator_action")
    counts = {table: engine.value(f"select count(*) from onecommit.{table}") for table in tables}
    assert counts == dict.fromkeys(tables, 0)


@pytest.mark.parametrize("case", ENQUEUE)
def test_enqueue_refuses(engine: Engine, case: str):
    """Before anything is written."""
    field, arguments = ENQUEUE[case]
    error = refused(engine.enqueue, **arguments)
    assert error.sqlstate == "22023"
    assert re.match(rf"(.*; )?{re.escape(field)}(\[\d+\])?: ", error.diag.message_primary)
    assert_untouched(engine)


def arguments_of_one(arguments: dict) -> dict | None:
    """The same mistake in a call of enqueue_job, if it can be made there."""
    count = arguments.get("count", 1)
    kinds, args = arguments.get("kinds", ["k"]), arguments.get("args", ["1"])
    options = arguments.get("options", {})
    if (count, len(kinds), len(args)) != (1, 1, 1) or not isinstance(options, dict):
        return None
    return {"queue": arguments.get("queue"), "kind": kinds[0], "args": args[0], **options}


ENQUEUE_ONE = {
    case: (field, one)
    for case, (field, arguments) in ENQUEUE.items()
    if (one := arguments_of_one(arguments)) is not None
}


@pytest.mark.parametrize("case", ENQUEUE_ONE)
def test_enqueueing_one_refuses(engine: Engine, case: str):
    """The short way is as strict."""
    field, arguments = ENQUEUE_ONE[case]
    error = refused(engine.enqueue_one, **arguments)
    assert error.sqlstate == "22023"
    assert re.match(rf"(.*; )?{re.escape(field)}(\[\d+\])?: ", error.diag.message_primary)
    assert_untouched(engine)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("priority", 0), ("priority", 5), ("priority", None), ("max_attempts", 0), ("max_attempts", -1),
        ("max_attempts", 32768), ("max_attempts", None),
        *((field, value) for field, value in OPTION_CASES if field in ("timeout_us", "tags", "trace", "meta")),
    ],
)  # fmt: skip
def test_an_option_of_one_job_refuses(engine: Engine, field: str, value):
    """By its name, wherever it is checked."""
    error = refused(engine.enqueue_one, **{field: value})
    assert error.sqlstate == "22023"
    assert error.diag.message_primary.startswith(f"{field}:")
    assert_untouched(engine)


@pytest.mark.parametrize("key", ["run_at", "delay_us", "unique", "priority"])
def test_enqueueing_one_refuses_what_needs_the_long_way(engine: Engine, key: str):
    """It would be stored and forgotten."""
    error = refused(
        engine.call, "enqueue_job", p_queue="q", p_kind="k", p_args="1", p_priority=2,
        p_max_attempts=1, p_options=json.dumps({key: 1}),
    )  # fmt: skip
    assert error.sqlstate == "22023"
    assert error.diag.message_primary.startswith("options:")
    assert_untouched(engine)


@pytest.mark.parametrize("options", [3, SECRET, [], [{}], True])
def test_enqueueing_one_refuses_options_that_are_no_object(engine: Engine, options):
    """Arrays are for many jobs."""
    error = refused(
        engine.call, "enqueue_job", p_queue="q", p_kind="k", p_args="1", p_priority=2,
        p_max_attempts=1, p_options=json.dumps(options),
    )  # fmt: skip
    assert error.sqlstate == "22023"
    assert error.diag.message_primary.startswith("options:")
    assert_untouched(engine)


@pytest.mark.parametrize("form", ["one for all", "one for each"])
@pytest.mark.parametrize(
    ("field", "value"), OPTION_CASES, ids=[f"{f}={str(v)[:30]}" for f, v in OPTION_CASES]
)
def test_an_option_refuses(engine: Engine, field: str, value, form: str):
    """Alone and in the array of a bulk call alike."""
    option = {"unique" if field == "window_us" else field: value}
    error = refused(engine.enqueue, 2, options=option if form == "one for all" else [{}, option])
    assert error.sqlstate == "22023"
    assert error.diag.message_primary.startswith(f"{field}:")
    assert_untouched(engine)


@pytest.mark.parametrize(
    "args",
    [
        "{}",
        "[]",
        "null",
        '"\\\\u0000"',
        '"\\ud83d\\ude00"',
        '"\\uD83D\\uDE00 \\\\ud800"',
        '"é\\u00e9"',
        " [1, 2.5e-3] ",
        '"' + "x" * (MEGABYTE - 2) + '"',
    ],
    ids=lambda text: text[:24],
)
def test_what_only_looks_bad_is_stored_as_it_is(engine: Engine, args: str):
    """Byte for byte: arguments are never parsed into another form."""
    job = engine.enqueue(args=[args]).job_ids[0]
    assert engine.job(job).args == args


def call_refused(engine: Engine, function: str, **arguments) -> psycopg.Error:
    return refused(engine.call, function, **arguments)


CALLS = {
    "limit too small": (
        "claim_jobs",
        "limit",
        {"p_worker": 1, "p_request": 1, "p_queue": "q", "p_limit": 0},
    ),
    "limit too large": (
        "claim_jobs",
        "limit",
        {"p_worker": 1, "p_request": 1, "p_queue": "q", "p_limit": 10001},
    ),
    "limit null": (
        "claim_jobs",
        "limit",
        {"p_worker": 1, "p_request": 1, "p_queue": "q", "p_limit": None},
    ),
    "request null": (
        "claim_jobs",
        "request",
        {"p_worker": 1, "p_request": None, "p_queue": "q", "p_limit": 1},
    ),
    "lifetime not positive": (
        "claim_jobs",
        "lifetime_us",
        {"p_worker": 1, "p_request": 1, "p_queue": "q", "p_limit": 1, "p_lifetime_us": 0},
    ),
    "worker without name": ("register_worker", "name", {"p_name": "", "p_info": "{}"}),
    "worker name too long": ("register_worker", "name", {"p_name": LONG, "p_info": "{}"}),
    "worker info an array": ("register_worker", "info", {"p_name": "w", "p_info": f'["{SECRET}"]'}),
    "worker info null": ("register_worker", "info", {"p_name": "w", "p_info": None}),
    "lane of no queue": ("adopt_lanes", "queue", {"p_queue": ""}),
    "lane of a long queue": ("adopt_lanes", "queue", {"p_queue": LONG}),
    "outcome unknown": ("finish_jobs", "outcomes", {"p_outcomes": [SECRET]}),
    "outcome null": ("finish_jobs", "outcomes", {"p_outcomes": [None]}),
    "outcome of others": ("finish_jobs", "outcomes", {"p_outcomes": ["rescued"]}),
    "progress not JSON": (
        "set_progress",
        "args",
        {"p_job_ids": [1], "p_run_leases": [1], "p_data": [SECRET]},
    ),
    "pause without actor": (
        "pause_queue",
        "actor",
        {"p_queue": "q", "p_actor": " ", "p_reason": SECRET},
    ),
    "resume without reason": (
        "resume_queue",
        "actor and reason",
        {"p_queue": "q", "p_actor": SECRET, "p_reason": None},
    ),
    "disable without reason": (
        "disable_caller_owned",
        "actor and reason",
        {"p_queue": "q", "p_actor": SECRET, "p_reason": " "},
    ),
    "allow without actor": (
        "allow_caller_owned",
        "actor and reason",
        {"p_queue": "q", "p_actor": None, "p_reason": SECRET},
    ),
    "cancel without reason": (
        "cancel_jobs",
        "actor and reason",
        {"p_job_ids": [1], "p_actor": SECRET, "p_reason": ""},
    ),
    "retry without actor": (
        "retry_dead_jobs",
        "actor",
        {"p_job_ids": [1], "p_actor": None, "p_reason": SECRET},
    ),
    "purge without actor": (
        "purge_dead_jobs",
        "actor",
        {"p_job_ids": [1], "p_actor": "", "p_reason": SECRET},
    ),
    "state unknown": (
        "list_jobs",
        "state",
        {"p_state": SECRET, "p_queue": None, "p_kind": None, "p_limit": 1, "p_before": None},
    ),
    "list limit": (
        "list_jobs",
        "limit",
        {"p_state": None, "p_queue": None, "p_kind": None, "p_limit": 1001, "p_before": None},
    ),
    "cancel what has finished": (
        "unfinished_jobs",
        "states",
        {"p_states": [SECRET], "p_limit": 1},
    ),
    "cancel in no state": ("unfinished_jobs", "states", {"p_states": [None], "p_limit": 1}),
    "cancel too many": ("unfinished_jobs", "limit", {"p_states": None, "p_limit": 1001}),
    "callbacks limit": ("list_callbacks", "limit", {"p_limit": 0}),
    "lanes none": ("add_lanes", "count", {"p_count": 0}),
    "lanes too many": ("add_lanes", "count", {"p_count": 1024}),
}
DEFAULTS = {
    "list_callbacks": {"p_job_id": None, "p_queue": None, "p_kind": None, "p_before": None},
    "unfinished_jobs": {"p_queue": None, "p_kind": None, "p_tags": None, "p_before": None},
    "claim_jobs": {"p_lifetime_us": None, "p_sleep": None},
    "finish_jobs": {
        "p_chapters": [1], "p_lanes": [1], "p_seqs": [1], "p_job_ids": [1], "p_run_leases": [1], "p_delays_us": [0],
        "p_codes": ["x"], "p_details": [None], "p_lock": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_call_refuses(engine: Engine, case: str):
    """The other functions follow the same rule."""
    function, field, arguments = CALLS[case]
    error = call_refused(engine, function, **DEFAULTS.get(function, {}) | arguments)
    assert error.sqlstate == "22023"
    assert field in error.diag.message_primary
    assert_untouched(engine)


@pytest.mark.parametrize(
    "function", ["pause_queue", "resume_queue", "disable_caller_owned", "allow_caller_owned"]
)
def test_an_unknown_queue_is_no_success(engine: Engine, function: str):
    """A typing error in an operator's command must not pass for success."""
    error = call_refused(engine, function, p_queue=SECRET, p_actor="a", p_reason="r")
    assert error.sqlstate == "OC009"
    assert error.diag.message_hint
    assert_untouched(engine)


def test_a_refused_enqueue_spoils_nothing_but_its_savepoint(engine: Engine):
    """The caller's transaction goes on from there."""
    with engine.open():
        before = engine.enqueue_one()
        engine.sql("savepoint a")
        refused(engine.enqueue, args=[SECRET])
        engine.sql("rollback to a")
        after = engine.enqueue_one()
    assert engine.claim().job_ids == [before, after]


def test_the_pool_of_lanes_ends_with_a_remedy(engine: Engine):
    """A new queue is refused, existing ones go on, added lanes help."""
    with engine.open():
        held = engine.enqueue_one()
        free = engine.value("select count(*) from onecommit.lane where queue is null and lane > 0")
        for n in range(free):
            engine.call("adopt_lanes", p_queue=f"filler {n}")
        for call in (lambda: engine.enqueue(queue="new"), lambda: engine.enqueue(options={"priority": 1}),
                     lambda: engine.enqueue(options={"priority": 4, "delay_us": 10**9})):  # fmt: skip
            engine.sql("savepoint a")
            error = refused(call)
            assert (error.sqlstate, "lanes add" in error.diag.message_hint) == ("OC007", True)
            engine.sql("rollback to a")
        assert engine.enqueue_one() > held
        engine.call("add_lanes", p_count=1)
        assert engine.enqueue_one(queue="new") > held
        engine.rollback()


def test_no_payload_reaches_the_server_log(store: Store):
    """Neither a refused payload nor one whose transaction failed."""
    engine = store.engine()
    for text in (f'{{"{SECRET}": ', f'"{SECRET}\\u0000"', json.dumps(SECRET + "x" * MEGABYTE)):
        refused(engine.enqueue, args=[text])
    refused(engine.enqueue, options={"run_at": f"{SECRET}"})
    refused(engine.enqueue, options={"unique": {"key": SECRET}})
    log = store.database.cluster.server.server.directory.log_file.read_text()
    assert "args" in log
    assert SECRET not in log
