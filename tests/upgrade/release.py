"""The previous release: its wheel, its SQL, and its processes."""

import hashlib
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from onecommit.schema import Bundle, read_bundle

HERE = Path(__file__).resolve().parent
VERSION = "0.1.0"
WHEEL = HERE / f"onecommit-{VERSION}-py3-none-any.whl"


def sha256() -> str:
    return hashlib.sha256(WHEEL.read_bytes()).hexdigest()


def bundle() -> Bundle:
    """What the release installs, read from its wheel."""
    sql = zipfile.Path(WHEEL) / "onecommit" / "sql"
    return read_bundle(sql, package_version=VERSION)


def install(target: Path) -> Path:
    """Put the release, without its dependencies, into a directory for PYTHONPATH."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-compile", "--disable-pip-version-check", "--target", str(target), str(WHEEL)]
    subprocess.run(command, check=True)
    return target


def capabilities() -> set[str]:
    """The roles that the release knows."""
    file = zipfile.Path(WHEEL) / "onecommit" / "sql" / "capabilities.toml"
    manifest = tomllib.loads(file.read_text())
    del manifest["tables"]
    named = {
        name for area in manifest.values() for entry in area.values() for name in entry["grants"]
    }
    return named - {"owner"}
