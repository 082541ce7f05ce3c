"""Write the exception classes of sql/errors.csv and sql/work_codes.csv into errors.py; with --check, fail if they differ."""

import csv
import subprocess
import sys
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "onecommit"
BEGIN = (
    "# --- generated from sql/errors.csv and sql/work_codes.csv by tools/generate_errors.py ---\n"
)
END = "# --- end of the generated block ---\n"


def class_of(row: dict[str, str]) -> str:
    """One exception class: meaning as docstring, code, remedy as the advice."""
    remedy = textwrap.indent(f"remedy = {row['remedy'] + '.'!r}", "    ")
    return (
        f"\nclass {row['name']}({row.get('base', 'OnecommitError')}):\n"
        f'    """{row["meaning"]}."""\n\n'
        f'    code = "{row["code"]}"\n{remedy}\n\n'
    )


def table_of(name: str, rows: list[dict[str, str]]) -> str:
    """The table from code to class."""
    entries = "".join(f'    "{row["code"]}": {row["name"]},\n' for row in rows)
    return f"\n{name}: dict[str, type[OnecommitError]] = {{\n{entries}}}\n"


def block_of(states: list[dict[str, str]], work: list[dict[str, str]]) -> str:
    """Every class, then the tables. A code of Work without a base has a class of its own already."""
    classes = map(class_of, [*states, *(row for row in work if row["base"])])
    tables = table_of("_BY_SQLSTATE", states) + table_of("_BY_WORK_CODE", work)
    return f"{BEGIN}{''.join(classes)}{tables}{END}"


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a file beside the protocol."""
    with (PACKAGE / "sql" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def formatted(text: str) -> str:
    """The text as ruff formats it."""
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", "errors.py", "-"]
    return subprocess.check_output(ruff, input=text, text=True)


def main() -> int:
    """Refresh the block between the two marks, or compare it."""
    target = PACKAGE / "errors.py"
    old = target.read_text()
    states = [{**row, "code": row["sqlstate"]} for row in rows_of("errors.csv")]
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    new = formatted(head + block_of(states, rows_of("work_codes.csv")) + tail)
    if "--check" in sys.argv[1:]:
        if new == old:
            return 0
        print("errors.py differs from its sources. Run `python tools/generate_errors.py`.")
        return 1
    target.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
