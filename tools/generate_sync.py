"""Write the sync twin of each async module; with --check, fail if a twin differs from its source.

Two markers steer a line of the source: `# async-only` at its end leaves it out of the twin, and
`# sync-only: code` puts the code into the twin alone. Strings and docstrings are translated as well.
"""

import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "onecommit"

TWINS = {
    "store/async_store.py": "store/sync_store.py",
    "app/async_producer.py": "app/sync_producer.py",
    "app/async_client.py": "app/sync_client.py",
    "app/async_follow_ups.py": "app/sync_follow_ups.py",
    "app/async_callbacks.py": "app/sync_callbacks.py",
    "app/async_acceptor.py": "app/sync_acceptor.py",
    "app/async_handoff.py": "app/sync_handoff.py",
    "app/async_works.py": "app/sync_works.py",
    "testing/async_jobs.py": "testing/sync_jobs.py",
}

# Applied to each line in this order; what is special comes before the general rule for our own names.
SUBSTITUTIONS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^(\s*)# sync-only: (.*)$", r"\1\2"),
        (r"\basync (def|with|for)\b", r"\1"),
        (r"\bawait ", ""),
        (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
        (r"\basynccontextmanager\b", "contextmanager"),
        (r"\ba(close|iter|next)\(", r"\1("),
        (r"\bCoroutine\[Any, Any, ((?:[^\[\]]|\[[^\[\]]*\])+)\]", r"\1"),
        (r"\bAwaitable\[((?:[^\[\]]|\[[^\[\]]*\])+)\]", r"\1"),
        (r"\bAbstractAsync(ContextManager)\b", r"Abstract\1"),
        (r"\bStopAsyncIteration\b", "StopIteration"),
        (r"\bAsync(Iterator|Iterable|ExitStack)\b", r"\1"),
        (r"\bAsync(Connection|Connection\w*Pool|Null\w*Pool|\w*Cursor|Transaction)\b", r"\1"),
        (r"^(\s*)import asyncio$", r"\1import threading, time"),
        (r"\basyncio\.sleep\b", "time.sleep"),
        (r"\basyncio\.(Lock|Event|Condition|Semaphore)\b", r"threading.\1"),
        (r"\bAsync([A-Z])", r"Sync\1"),
        (r"\basync_(?=\w)", "sync_"),
    )
]


def twin_of(source: str, *, name: str) -> str:
    """The sync text of one async module, before formatting."""
    lines = [
        f"# Generated from {name} by tools/generate_sync.py: edit that file, then `make sync`."
    ]
    for line in source.splitlines():
        if line.endswith("# async-only"):
            continue
        for pattern, replacement in SUBSTITUTIONS:
            line = pattern.sub(replacement, line)  # noqa: PLW2901  # each rule sees the one before
        lines.append(line)
    return "\n".join(lines) + "\n"


def formatted(text: str, *, path: Path) -> str:
    """The text as ruff leaves it: imports sorted, the ones that the twin does not need removed."""
    for command in ("check --fix-only --select E401,F401,I", "format"):
        ruff = [sys.executable, "-m", "ruff", *command.split(), "--quiet", "--stdin-filename"]
        text = subprocess.check_output([*ruff, str(path), "-"], input=text, text=True, cwd=ROOT)
    return text


def refresh(source: Path, target: Path, *, check: bool) -> bool:
    """Write one twin, or only compare it; true if it already was as generated."""
    old = target.read_text() if target.exists() else ""
    new = twin_of(source.read_text(), name=source.name) if source.exists() else ""
    new = formatted(new, path=target)
    if new and not check:
        target.write_text(new)
    names = (f"{target} (found)", f"{target} (generated)")
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), *names))  # noqa: FBT003
    return old == new


def main() -> int:
    """Refresh every twin of the table."""
    check = "--check" in sys.argv[1:]
    same = [refresh(PACKAGE / a, PACKAGE / b, check=check) for a, b in TWINS.items()]
    if check and not all(same):
        print("A sync twin differs from its async source. Run `make sync` and commit the result.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
