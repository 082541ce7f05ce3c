"""Write the exception classes of sql/errors.csv into errors.py; with --check, fail if they differ."""

import csv
import subprocess
import sys
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "onecommit"
BEGIN = "# --- generated from sql/errors.csv by tools/generate_errors.py: edit that file ---\n"
END = "# --- end of the generated block ---\n"


def class_of(row: dict[str, str]) -> str:
    """One exception class: meaning as docstring, SQLSTATE as code, remedy as the advice."""
    remedy = textwrap.indent(f"remedy = {row['remedy'] + '.'!r}", "    ")
    return (
        f"\nclass {row['name']}(OnecommitError):\n"
        f'    """{row["meaning"]}."""\n\n'
        f'    code = "{row["sqlstate"]}"\n{remedy}\n\n'
    )


def block_of(rows: list[dict[str, str]]) -> str:
    """Every class, then the table from SQLSTATE to class."""
    classes = "".join(class_of(row) for row in rows)
    table = "".join(f'    "{row["sqlstate"]}": {row["name"]},\n' for row in rows)
    annotation = "dict[str, type[OnecommitError]]"
    return f"{BEGIN}{classes}\n_BY_SQLSTATE: {annotation} = {{\n{table}}}\n{END}"


def formatted(text: str) -> str:
    """The text as ruff formats it."""
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", "errors.py", "-"]
    return subprocess.check_output(ruff, input=text, text=True)


def main() -> int:
    """Refresh the block between the two marks, or compare it."""
    target = PACKAGE / "errors.py"
    old = target.read_text()
    with (PACKAGE / "sql" / "errors.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    new = formatted(head + block_of(rows) + tail)
    if "--check" in sys.argv[1:]:
        if new == old:
            return 0
        print("errors.py differs from sql/errors.csv. Run `python tools/generate_errors.py`.")
        return 1
    target.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
