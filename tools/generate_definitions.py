"""Write src/onecommit/sql/definitions.csv from a store that the migrations make, which the doctor compares others with.

It starts a temporary server. tests/doctor/test_definitions.py compares the file on the oldest and the newest major.
"""

import csv
from pathlib import Path

import psycopg

from onecommit import schema
from onecommit.doctor.catalog import Catalog, read_catalog
from onecommit.doctor.expected import Key, definition_of
from onecommit.embedded import EmbeddedPostgres

FILE = Path(__file__).resolve().parent.parent / "src" / "onecommit" / "sql" / "definitions.csv"


def definitions(catalog: Catalog) -> dict[Key, str]:
    """What was read, once for all chapters and lanes."""
    found: dict[Key, str] = {}
    for row in catalog.definitions:
        key, definition = definition_of(row, catalog.schema)
        if found.setdefault(key, definition) != definition:
            raise SystemExit(f"{row.relation} {row.part} differs from its siblings")
    return found


if __name__ == "__main__":
    with EmbeddedPostgres() as server:
        schema.apply(server.dsn())
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            rows = definitions(read_catalog(connection, "onecommit"))
    with FILE.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows((*key, rows[key]) for key in sorted(rows))
