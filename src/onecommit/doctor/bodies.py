"""What a routine's body says, found in its text: calls, names, and statements that the protocol forbids itself."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<string>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"""
    r"""|(?P<name>"(?:[^"]|"")*")""",
    re.DOTALL,
)
_RELATION = re.compile(
    r"\b(?:from|join|insert into|update|delete from|using)\s+(?:only\s+)?([a-z_]\w*)\b(?!\s*\()"
)
_LOCAL = re.compile(r"\b(\w+)\s+as\s+(?:not\s+)?(?:materialized\s+)?\(")
_SYNTAX = re.compile(
    r"\bdistinct from\b|\b(?:epoch|microseconds?|year|month|day|hour|minute|second)\s+from\b"
)
# No relations: `for update skip locked`, `do update set`, `raise … using errcode`.
_NO_RELATION = frozenset(
    {"lateral", "skip", "set", "pg_catalog", "nowait", "of", "errcode", "hint", "detail", "message"}
)

_STATEMENT = r"(?:^|;|\bbegin\b|\bthen\b|\belse\b|\bloop\b)\s*"
_PROHIBITED: Mapping[str, re.Pattern[str]] = {
    "runs a text as SQL": re.compile(
        r"\bexecute\b(?!\s+(?:function|procedure)\b)|\b(?:query|cursor|table|schema|database)_to_xml\w*\s*\(|\bts_stat\s*\("
    ),
    "changes the role": re.compile(
        r"\b(?:set|reset)\s+(?:local\s+|session\s+)?(?:role|session\s+authorization|authorization)\b"
    ),
    "changes a setting": re.compile(
        rf"{_STATEMENT}(?:set|reset)\s+(?!constraints\b)(?:local\s+|session\s+)?\w+"
    ),
    "defines or grants something": re.compile(
        rf"{_STATEMENT}(?:create|alter|drop|grant|revoke|truncate|comment|security label|reassign|import)\b"
    ),
    "ends the transaction": re.compile(
        rf"{_STATEMENT}(?:commit|rollback|abort|savepoint|prepare transaction)\b"
    ),
    "reaches outside the database": re.compile(
        r"\b(?:dblink\w*|lo_import|lo_export|pg_read_\w*file|pg_ls_\w*dir|pg_stat_file|pg_file_\w+|pg_logical_emit_message"
        rf")\s*\(|{_STATEMENT}copy\b"
    ),
    "acts on other sessions": re.compile(
        r"\bpg_(?:terminate|cancel)_backend\s*\(|\bpg_reload_conf\s*\(|\bpg_rotate_logfile\s*\("
    ),
    "waits on purpose": re.compile(r"\bpg_sleep\w*\s*\("),
}
_SET_CONFIG = re.compile(r"\bset_config\s*\(\s*(?!'onecommit\.\w+')")


def without_comments(body: str) -> str:
    """The body's code, its texts included."""
    return _TOKEN.sub(lambda found: " " if found["comment"] else found[0], body)


def without_texts(body: str) -> str:
    """The body's code with every string constant emptied: what only looks like a statement is gone."""
    return _TOKEN.sub(
        lambda found: " " if found["comment"] else "''" if found["string"] else found[0], body
    )


@lru_cache(maxsize=1024)
def calls(body: str, schema: str) -> frozenset[str]:
    """The routines of the schema that the code names before a parenthesis; tables may be among them."""
    name = re.escape(schema)
    found = re.findall(rf'(?:"{name}"|\b{name})\."?(\w+)"?\s*\(', without_comments(body))
    return frozenset(found)


def call_graph(bodies: Mapping[str, str], schema: str) -> dict[str, frozenset[str]]:
    """Which routines of the bodies each one names."""
    return {name: calls(body, schema) & bodies.keys() for name, body in bodies.items()}


def reached(root: str, graph: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    """Every routine that a call of the root may reach, itself included, with a shortest path to it."""
    found: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[str, ...]] = [(root,)]
    for path in waiting:
        if path[-1] not in found:
            found[path[-1]] = path
            waiting += ((*path, name) for name in sorted(graph[path[-1]] - found.keys()))
    return found


def is_dynamic(body: str) -> bool:
    """Whether the code runs a text as SQL, or names a relation by a text that it puts together."""
    fixed = re.sub(r"'\"[^']*'::regclass", "", without_comments(body))
    return bool(re.search(r"\bexecute\b|::regclass\s*\)", fixed))


@lru_cache(maxsize=1024)
def prohibited(body: str, schema: str, *, dynamic: bool) -> tuple[str, ...]:
    """What the body does and no routine of the protocol may; dynamic: the manifest lets it run texts."""
    return tuple(_prohibited(body, schema, dynamic=dynamic))


def _prohibited(body: str, schema: str, *, dynamic: bool) -> Iterator[str]:
    code = re.sub(r"\s+", " ", without_texts(body)).strip().lower()
    for problem, pattern in _PROHIBITED.items():
        if pattern.search(code) and not (dynamic and problem == "runs a text as SQL"):
            yield problem
    if _SET_CONFIG.search(without_comments(body).lower()):
        yield "changes a setting that is not ours"
    yield from (f"names {name} without a schema" for name in unqualified(body))
    yield from (f"uses {name}, of another schema" for name in foreign(body, schema))


def unqualified(body: str) -> list[str]:
    """Names after from, join, into and so on that are neither qualified nor the statement's own."""
    code = re.sub(r"\s+", " ", without_texts(body).lower())
    code = _SYNTAX.sub(" ", re.sub(r"\b(?:overlay|substring|trim|position)\s*\([^()]*\)", "", code))
    local = _NO_RELATION | set(_LOCAL.findall(code))
    return sorted(
        {
            found[1]
            for found in _RELATION.finditer(code)
            if _is_plain(code, found) and found[1] not in local
        }
    )


def foreign(body: str, schema: str) -> list[str]:
    """Relations and functions of a schema that is neither the store's nor PostgreSQL's."""
    code = _SYNTAX.sub(" ", re.sub(r"\s+", " ", without_texts(body)))
    ours = {schema, "pg_catalog"}
    part = r'("(?:[^"]|"")+"|[a-zA-Z_]\w*)'
    found = re.findall(
        rf"\b(?:from|join|insert into|update|delete from)\s+(?:only\s+)?{part}\.{part}", code
    )
    found += re.findall(rf"(?<![\w.\"]){part}\.{part}\s*\((?!\w+ *\) *on)", code)
    found += re.findall(rf"\boperator\s*\(\s*{part}\.(\S+?)\s*\)", code)
    return sorted({f"{space}.{name}" for space, name in found if space.strip('"') not in ours})


def _is_plain(code: str, found: re.Match[str]) -> bool:
    return code[found.end() : found.end() + 1] != "."
