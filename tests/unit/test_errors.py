"""Every SQLSTATE of the contract arrives as one exception with a remedy."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from onecommit import errors

ROOT = Path(__file__).resolve().parents[2]
ROWS = list(csv.DictReader((ROOT / "src/onecommit/sql/errors.csv").read_text().splitlines()))
WORK = list(csv.DictReader((ROOT / "src/onecommit/sql/work_codes.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["sqlstate"])
def test_each_code_has_its_class(row):
    error = errors.from_sqlstate(row["sqlstate"], "it happened")
    assert type(error) is getattr(errors, row["name"])
    assert str(error) == f"{row['sqlstate']}: it happened. {row['remedy']}."


@pytest.mark.parametrize("row", WORK, ids=lambda row: row["code"])
def test_each_code_of_work_has_its_class(row):
    assert type(errors.from_work_code(row["code"], "it happened")) is getattr(errors, row["name"])


def test_the_codes_of_work_are_those_of_the_protocol():
    numbers = [int(row["code"].removeprefix("ASDUR")) for row in WORK]
    assert numbers == [*range(100, 122), *range(400, 407)]


@pytest.mark.parametrize("row", [row for row in WORK if row["base"]], ids=lambda row: row["code"])
def test_an_error_of_work_says_its_code_and_remedy(row):
    error = errors.from_work_code(row["code"], "it happened")
    assert str(error) == f"{row['code']}: it happened. {row['remedy']}."


def test_the_servers_hint_is_the_better_remedy():
    assert errors.from_sqlstate("OC001", "it happened", hint="Do this.").remedy == "Do this."


def test_a_bad_argument_names_its_field():
    error = errors.from_sqlstate("22023", "args[3]: must be JSON")
    assert isinstance(error, ValueError)
    assert error.field == "args[3]"


@pytest.mark.parametrize("sqlstate", [None, "", "23505", "40001"])
def test_the_databases_own_errors_stay_what_they_are(sqlstate):
    assert errors.from_sqlstate(sqlstate, "duplicate key") is None


def test_the_classes_are_as_generated():
    script = ROOT / "tools" / "generate_errors.py"
    checked = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert checked.returncode == 0


def test_the_drawn_tree_is_the_real_one():
    drawn = errors.__doc__
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.OnecommitError)
    ]
    assert classes
    for error in classes:
        assert error.__name__ in drawn
