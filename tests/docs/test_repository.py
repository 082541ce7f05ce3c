"""The repository keeps the promises that its own documents make."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import onecommit

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TRACKED = [
    ROOT / name
    for name in subprocess.check_output(
        ["git", "ls-files", "-z", "--cached"], cwd=ROOT, text=True
    ).split("\0")
    if name and (ROOT / name).is_file()
]
MARKDOWN = [path for path in TRACKED if path.suffix == ".md"]
README = (ROOT / "README.md").read_text()

# Put together here, so that this file does not name what it looks for.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("deb", "debian", "org"),
        ("crates", "io"),
    )
]


def normalized(requirement: str) -> str:
    """The package that a requirement names."""
    name = re.match(r"[\w.-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def declared_dependencies() -> set[str]:
    project = PROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    lists += PROJECT["dependency-groups"].values()
    return {normalized(item) for group in lists for item in group if isinstance(item, str)}


def anchor(heading: str) -> str:
    """The anchor that a Git host gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no heading of it."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        headings = (
            re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE) if file.is_file() else []
        )
        if not file.exists() or (fragment and fragment not in map(anchor, headings)):
            broken.append(target)
    return broken


def test_no_file_names_a_registry_host():
    """A registry is a setting of the user's machine, so no tracked file names one."""
    found = [
        f"{path.relative_to(ROOT)}: {host}"
        for path in TRACKED
        for host in REGISTRY_HOSTS
        if re.search(rf"\b{re.escape(host)}\b".encode(), path.read_bytes())
    ]
    assert found == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/tutorial/README.md"])
def test_every_make_command_of_the_documents_exists(page: str):
    """A reader can type each `make` command that the documents show."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = re.findall(r"(?:^|`)make\s+([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE)
    assert shown
    assert [name for name in shown if name not in targets] == []


def test_readme_shows_the_two_commands():
    """The first thing to type is `make demo`, the second `make check`."""
    assert re.findall(r"^make (\w+)", README, re.MULTILINE) == ["demo", "check"]


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_readme_example_uses_public_names_only(example: str):
    """The examples of the README import what the package really exports."""
    imported = [
        alias.name
        for node in ast.walk(ast.parse(example))
        if isinstance(node, ast.ImportFrom) and node.module == "onecommit"
        for alias in node.names
    ]
    assert imported
    assert [name for name in imported if name not in onecommit.__all__] == []


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_documents_resolve(page: Path):
    """No link between our pages is dead."""
    assert broken_links(page) == []


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_is_a_stub(page: Path):
    """A page that exists says something."""
    text = page.read_text()
    assert text.startswith("# ") or page.parent.name == "changelog.d"
    assert len(text.split()) >= 20


def test_every_dependency_has_its_reason():
    """dependencies.md names exactly the packages that pyproject.toml declares."""
    page = (ROOT / "docs/decisions/dependencies.md").read_text()
    python_part, _, _ = page.partition("## System packages")
    explained = set(re.findall(r"^\| ([\w-]+) \| \S", python_part, re.MULTILINE)) - {"package"}
    assert explained == declared_dependencies()


@pytest.mark.parametrize("group", ["dev", "bench"])
def test_the_lock_file_pins_every_dependency_by_hash(group: str):
    """An installation takes nothing that its lock file does not pin."""
    lock = (ROOT / f"requirements/{group}.lock").read_text()
    pinned = {normalized(line) for line in re.findall(r"^[\w.-]+==.*$", lock, re.MULTILINE)}
    needed = PROJECT["project"]["dependencies"] + [
        item for item in PROJECT["dependency-groups"][group] if isinstance(item, str)
    ]
    assert {normalized(item) for item in needed} - pinned == set()
    unhashed = re.findall(r"^[\w.-]+==.*(?:[^\\]\n|\\\n(?!    --hash=sha256:))", lock, re.MULTILINE)
    assert unhashed == []


def test_public_names_are_sorted_and_exist():
    """`__all__` is the sorted list of the public names."""
    names = onecommit.__all__
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(onecommit, name)] == []


def test_public_classes_report_the_package_as_their_module():
    """A traceback or repr names a class as users import it."""
    values = {name: getattr(onecommit, name) for name in onecommit.__all__}
    foreign = [
        name
        for name, value in values.items()
        if isinstance(value, type) and value.__module__ != "onecommit"
    ]
    assert foreign == []


def test_one_version():
    """The package and its metadata name the same version."""
    assert onecommit.__version__ == PROJECT["project"]["version"]


def test_ci_runs_exactly_make_check():
    """What CI runs, a contributor can run."""
    script = ROOT / ".ci/run"
    commands = [line for line in script.read_text().splitlines() if line and line[0] != "#"]
    assert script.stat().st_mode & 0o111
    assert commands == [
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")/.."',
        "exec make check </dev/null",
    ]


def test_changelog_fragments_have_a_known_kind():
    """Each fragment can be sorted into the changelog."""
    fragments = [path for path in TRACKED if path.parent.name == "changelog.d"]
    pattern = r"[a-z0-9-]+\.(added|changed|fixed|removed|security)\.md"
    odd = [p.name for p in fragments if p.name != "README.md" and not re.fullmatch(pattern, p.name)]
    assert odd == []


def test_the_wheel_holds_the_whole_package(tmp_path: Path):
    """What is installed from the wheel includes the SQL and the type marker."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    source = ROOT / "src"
    package = {str(path.relative_to(source)) for path in TRACKED if path.is_relative_to(source)}
    assert package - set(zipfile.ZipFile(wheel).namelist()) == set()
