"""The schema's name: what is accepted, and how it enters SQL text."""

import re

from onecommit.errors import InvalidArgument

DEFAULT_SCHEMA = "onecommit"
MAX_BYTES = 63

# Quotes, dollar, percent and backslash are left out on purpose: the name also stands inside string
# literals, dollar-quoted bodies and format() patterns of the protocol's SQL.
_ACCEPTED = re.compile(r"\w[\w .-]*")
_RESERVED = ("pg_", "information_schema", "public")


def checked_schema_name(name: str) -> str:
    """The name itself, if it can be a Onecommit schema; else an error that says what is accepted."""
    text: object = name
    if not isinstance(text, str) or not _ACCEPTED.fullmatch(name) or name != name.rstrip():
        raise _refused(
            "use letters, digits, '_', '-', '.' and inner spaces, starting with a letter, "
            "a digit or '_'"
        )
    if len(name.encode()) > MAX_BYTES:
        raise _refused(f"at most {MAX_BYTES} bytes; PostgreSQL would cut a longer name")
    if name.lower().startswith(_RESERVED[0]) or name.lower() in _RESERVED[1:]:
        raise _refused("choose a schema of its own, not one of PostgreSQL's or `public`")
    return name


def _refused(why: str) -> InvalidArgument:
    return InvalidArgument(f"schema: {why}", field="schema")


def render(text: str, schema: str) -> str:
    """The SQL text with its placeholders replaced by this (checked) schema name."""
    return text.replace('"@schema@"', f'"{schema}"').replace("'@schema@'", f"'{schema}'")
