"""A call of one SQL function, as a value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Rows = Sequence[Sequence[Any]]
Argument = str | None


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """One SQL function: its parameters with their types, and the columns read from it."""

    name: str
    parameters: dict[str, str]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A function, the arguments in the order of its parameters, and how to read its rows."""

    routine: Routine
    arguments: tuple[Argument, ...]
    read: Callable[[Rows], T]


class Paramstyle(Enum):
    """How a driver writes the placeholder of a text argument."""

    FORMAT = "%s"
    NUMERIC = "$"


@cache
def render(routine: Routine, schema: str, paramstyle: Paramstyle) -> str:
    """The statement that calls the function, each argument cast from text."""
    identifier = '"' + schema.replace('"', '""') + '"'
    if paramstyle is Paramstyle.FORMAT:
        identifier = identifier.replace("%", "%%")
        marks = [f"%s::{sql_type}" for sql_type in routine.parameters.values()]
    else:
        # asyncpg encodes by the type that the server infers; the detour over text keeps that text.
        types = enumerate(routine.parameters.values(), start=1)
        marks = [f"${number}::text::{sql_type}" for number, sql_type in types]
    arguments = ", ".join(
        f"{name} => {mark}" for name, mark in zip(routine.parameters, marks, strict=True)
    )
    called = f"{identifier}.{routine.name}({arguments})"
    if routine.columns == (routine.name,):
        return f"select {called}"  # a scalar without the cost of a function scan
    return f"select {', '.join(routine.columns)} from {called}"  # noqa: S608


def read_nothing(_: Rows) -> None:
    """For functions that return void."""


def read_scalar(rows: Rows) -> Any:
    """The one value of the one row."""
    return rows[0][0]
