"""Small bundles: older, newer and tampered ones."""

from collections.abc import Mapping
from pathlib import Path

from onecommit.schema import Bundle, read_bundle

INVOICE = 'create table "@schema@".invoice (id bigint primary key);\n'
TOTAL = 'alter table "@schema@".invoice add column total numeric;\n'


def function(name: str, value: int, arguments: str = "") -> str:
    """A routine file whose function returns a number."""
    return (
        f"-- Guarantee: {value}. Anybody.\n"
        f'create or replace function "@schema@".{name}({arguments}) returns integer\n'
        f"language sql as $$ select {value} $$;\n"
    )


ANSWER = {"store/answer": function("answer", 42)}


class BundleWriter:
    """Writes bundles below a directory of their own."""

    def __init__(self, directory: Path, *, store: str) -> None:
        self._directory = directory
        self._store = store
        self._written = 0

    def __call__(
        self,
        *migrations: str,
        routines: Mapping[str, str] = ANSWER,
        dropped: str = "",
        store: str | None = None,
        release: str | None = None,
    ) -> Bundle:
        """The store's migration, these migrations after it, and these routines by area/name."""
        self._written += 1
        root = self._directory / f"bundle_{self._written}"
        texts = {"0001_store": self._store if store is None else store}
        texts |= {f"{n:04}_step{n}": text for n, text in enumerate(migrations, 2)}
        for name, text in texts.items():
            _write(root / "migrations" / f"{name}.sql", text)
        for name, text in routines.items():
            _write(root / "routines" / f"{name}.sql", text)
        if dropped:
            _write(root / "routines" / "dropped.txt", dropped)
        return read_bundle(root, package_version=release)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
