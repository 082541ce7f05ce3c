"""The page of the models says what is checked and where the SQL of each step is."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
PAGE = (MODELS / "README.md").read_text()
ROUTINES = {path.name for path in (ROOT / "src/onecommit/sql/routines").rglob("*.sql")}


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """The program that checks the models; no package, so it is loaded by its path."""
    spec = importlib.util.spec_from_file_location("onecommit_models_run", MODELS / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def test_every_step_stands_in_an_sql_file_that_exists():
    """A file that was renamed or merged into another shows here."""
    named = set(re.findall(r"`(\w+\.sql)`", PAGE))
    assert len(named) > 40
    assert sorted(named - ROUTINES) == []


def test_every_model_is_described_and_mapped():
    """Each file has a chapter of its own and rows in the map."""
    names = {path.stem for path in MODELS.glob("*.pml")}
    assert names == set(re.findall(r"^## (\w+)\.pml$", PAGE, re.MULTILINE))
    assert names == set(
        re.findall(r"^\| ([a-z_]+) \| `?[\w ]+", PAGE.partition("## From model")[2], re.MULTILINE)
    ) - {"model"}


def test_the_table_lists_what_is_checked_with_the_verdict_it_must_give(runner: ModuleType):
    """By name, definitions and verdict; the figures are those of a run."""
    rows = re.findall(
        r"^\| ([\w-]+)( \(soak\))? \| (.*?) \| (holds|counterexample) \|", PAGE, re.MULTILINE
    )
    listed = {
        name: (bool(soak), tuple(re.findall(r"`([A-Z_]+(?:=\w+)?)`", definitions)), verdict)
        for name, soak, definitions, verdict in rows
    }
    checked = {
        each.name: (each.soak, each.defines, str(each.expected)) for each in runner.CONFIGURATIONS
    }
    assert listed == checked


def test_every_switch_of_a_model_is_thrown_once(runner: ModuleType):
    """A mistake that can be built in and is not tried would prove nothing."""
    defined = {
        (each.model, define.partition("=")[0])
        for each in runner.CONFIGURATIONS
        for define in each.defines
    }
    switches = {
        (path.name, name)
        for path in MODELS.glob("*.pml")
        for name in re.findall(r"^#ifdef (\w+)", path.read_text(), re.MULTILINE)
    }
    assert switches - defined == set()
