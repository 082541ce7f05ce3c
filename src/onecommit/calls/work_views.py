"""Reading Work and scopes: the calls of operators and readers."""

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import msgspec

from onecommit.calls.call import Call, Routine, Rows
from onecommit.calls.literals import flag, integer, optional_integer, optional_text, text_array
from onecommit.domain.arguments import INTEGER, checked_text
from onecommit.domain.work import WorkState
from onecommit.domain.work_view import PermitView, ScopeView, WorkCount, WorkHistoryEntry, WorkView
from onecommit.errors import InvalidArgument

T = TypeVar("T", bound=msgspec.Struct)

_VIEW = tuple("scope_id" if name == "scope" else name for name in WorkView.__struct_fields__)

GET_WORK = Routine("get_work", {"p_work_id": "bigint"}, _VIEW)
LIST_WORK = Routine(
    "list_work",
    {
        "p_scope_id": "text",
        "p_states": "text[]",
        "p_needs_operator": "boolean",
        "p_contract_name": "text",
        "p_limit": "integer",
        "p_before": "bigint",
    },
    _VIEW,
)
WORK_EVENTS = Routine("work_events", {"p_work_id": "bigint"}, WorkHistoryEntry.__struct_fields__)
WORK_PERMITS = Routine("work_permits", {"p_work_id": "bigint"}, PermitView.__struct_fields__)
WORK_COUNTS = Routine("work_counts", {}, ("state", "items"))
COUNT_WORK = Routine(
    "count_work",
    {
        "p_scope_id": "text",
        "p_contract_name": "text",
        "p_by_scope": "boolean",
        "p_limit": "integer",
    },
    ("scope_id", *WorkCount.__struct_fields__[1:]),
)
GET_SCOPE = Routine(
    "get_scope", {"p_scope_id": "text"}, ("scope_id", *ScopeView.__struct_fields__[1:])
)


def get_work(work_id: int) -> Call[WorkView | None]:
    """One item of Work, or None."""
    return Call(GET_WORK, (_work_id(work_id),), lambda rows: _first(_read(WorkView, rows)))


def list_work(
    *,
    scope: str | None,
    states: Collection[WorkState] | None,
    needs_operator: bool,
    contract: str | None,
    limit: int,
    before: int | None,
) -> Call[list[WorkView]]:
    """Work from the newest to the oldest, below the id `before`."""
    named = None if states is None else text_array(_values(states), field="states")
    arguments = (
        optional_text(scope, field="scope"),
        named,
        flag(needs_operator, field="needs_operator"),
        optional_text(contract, field="contract"),
        integer(limit, field="limit", bits=INTEGER),
        optional_integer(before, field="before"),
    )
    return Call(LIST_WORK, arguments, lambda rows: _read(WorkView, rows))


def work_events(work_id: int) -> Call[list[WorkHistoryEntry]]:
    """What happened to Work, from the first to the last."""
    return Call(WORK_EVENTS, (_work_id(work_id),), lambda rows: _read(WorkHistoryEntry, rows))


def work_permits(work_id: int) -> Call[list[PermitView]]:
    """The permits of Work, from the first to the last."""
    return Call(WORK_PERMITS, (_work_id(work_id),), lambda rows: _read(PermitView, rows))


def work_counts() -> Call[dict[WorkState, int]]:
    """How many unfinished items stand in each state."""
    return Call(WORK_COUNTS, (), lambda rows: {WorkState(state): items for state, items in rows})


def count_work(
    *, scope: str | None, contract: str | None, by_scope: bool, limit: int
) -> Call[list[WorkCount]]:
    """How many unfinished items of each contract stand in each state, the largest counts first."""
    arguments = (
        optional_text(scope, field="scope"),
        optional_text(contract, field="contract"),
        flag(by_scope, field="by_scope"),
        integer(limit, field="limit", bits=INTEGER),
    )
    return Call(COUNT_WORK, arguments, lambda rows: _read(WorkCount, rows))


def get_scope(scope: str) -> Call[ScopeView | None]:
    """One scope, or None."""
    return Call(
        GET_SCOPE,
        (checked_text(scope, field="scope"),),
        lambda rows: _first(_read(ScopeView, rows)),
    )


def _work_id(work_id: int) -> str:
    return integer(work_id, field="work_id")


def _values(states: Collection[WorkState]) -> list[str]:
    if isinstance(states, str):  # a text is a collection of texts too, to Python
        raise InvalidArgument("`states` is a text, not a list of states", field="states")
    try:
        return [WorkState(state).value for state in states]
    except (TypeError, ValueError) as error:
        raise InvalidArgument("`states` holds what is no state of Work", field="states") from error


def _read(kind: type[T], rows: Rows) -> list[T]:
    names = kind.__struct_fields__
    return [_view(kind, names, row) for row in rows]


def _view(kind: type[T], names: tuple[str, ...], row: Sequence[Any]) -> T:
    return msgspec.convert(dict(zip(names, row, strict=True)), kind)


def _first(found: list[T]) -> T | None:
    return found[0] if found else None
