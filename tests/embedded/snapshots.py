"""What a directory looks like, to see that nothing in it was changed."""

from pathlib import Path


def snapshot(root: Path) -> list[tuple[object, ...]]:
    """Name, rights, owner, time and identity of everything below a directory."""
    facts = [(path, path.lstat()) for path in (root, *sorted(root.rglob("*")))]
    return [(path, s.st_mode, s.st_uid, s.st_mtime_ns, s.st_ino) for path, s in facts]
