"""The plans that functions really used, sent to the client as notices while they run."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.engine import Engine

SETTINGS = {
    "log_min_duration": "0",
    "log_nested_statements": "on",
    "log_analyze": "on",
    "log_timing": "off",
    "log_format": "json",
    "log_level": "notice",
}
READ = (
    "Actual Rows",
    "Rows Removed by Filter",
    "Rows Removed by Join Filter",
    "Rows Removed by Index Recheck",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of a plan and how many rows went through it."""

    kind: str
    relation: str
    index: str
    rows: float
    query: str


class Plans:
    """Every step of every statement since the watch began."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.jit = 0

    def add(self, notice: psycopg.errors.Diagnostic) -> None:
        _, found, text = (notice.message_primary or "").partition("plan:\n")
        if found:
            plan = json.loads(text)
            self.jit += "JIT" in plan
            self.nodes.extend(nodes_of(plan["Plan"], " ".join(plan["Query Text"].split())))

    def on(self, text: str) -> list[Node]:
        """The steps of the statements that contain the text."""
        return [node for node in self.nodes if text in node.query]

    @property
    def largest(self) -> Node:
        return max(self.nodes, key=lambda node: node.rows)


def nodes_of(plan: dict[str, Any], query: str) -> Iterator[Node]:
    """The steps of one plan, from the top."""
    yield Node(
        kind=plan["Node Type"],
        relation=plan.get("Relation Name", ""),
        index=plan.get("Index Name", ""),
        rows=sum(plan.get(key, 0) for key in READ) * plan.get("Actual Loops", 1),
        query=query,
    )
    for child in plan.get("Plans", ()):
        yield from nodes_of(child, query)


@contextmanager
def watched(engine: Engine) -> Iterator[Plans]:
    """Collect the plans of all that the block does on this connection. Superuser only."""
    plans = Plans()
    engine.sql("load 'auto_explain'")
    for name, value in SETTINGS.items():
        engine.sql(f"set auto_explain.{name} = {value}")
    engine.connection.add_notice_handler(plans.add)
    try:
        yield plans
    finally:
        engine.connection.remove_notice_handler(plans.add)
        engine.sql("set auto_explain.log_min_duration = -1")
