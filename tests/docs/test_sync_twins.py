"""The sync twins are translations of their async sources."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "generate_sync.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_sync", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "twin"),
    [
        ("async with a as b:", "with a as b:"),
        ("x = [y async for y in await f(1)]", "x = [y for y in f(1)]"),
        ("async def __aenter__(self) -> 'AsyncStore':", "def __enter__(self) -> 'SyncStore':"),
        ("await self._pool.aclose()", "self._pool.close()"),
        (
            "pool: AsyncConnectionPool[AsyncConnection[Row]]",
            "pool: ConnectionPool[Connection[Row]]",
        ),
        (
            "def f(g: Callable[[int], Awaitable[list[T]]]) -> T:",
            "def f(g: Callable[[int], list[T]]) -> T:",
        ),
        (
            "from onecommit.store.async_store import AsyncStore",
            "from onecommit.store.sync_store import SyncStore",
        ),
        ("    lock = asyncio.Lock()", "    lock = threading.Lock()"),
        ("    # sync-only: x = 1", "    x = 1"),
        ("reclaim(); dataclose(); await_reply = 1", "reclaim(); dataclose(); await_reply = 1"),
    ],
)
def test_each_line_is_translated(generator: ModuleType, source: str, twin: str):
    """A sync caller gets the same code without the awaiting."""
    assert generator.twin_of(source, name="async_x.py").splitlines()[1:] == [twin]


def test_a_line_for_async_callers_alone_is_left_out(generator: ModuleType):
    """`# async-only` keeps a line out of the twin."""
    assert generator.twin_of("x = 1  # async-only", name="async_x.py").splitlines()[1:] == []


def test_check_finds_an_edited_twin_and_leaves_it_alone(generator: ModuleType, tmp_path: Path):
    """CI fails on a twin that was edited by hand, and on one whose source is gone."""
    source, target = tmp_path / "async_x.py", tmp_path / "sync_x.py"
    source.write_text('"""A store."""\n\n\nasync def f() -> None:\n    await g()\n')
    assert not generator.refresh(source, target, check=False)
    assert generator.refresh(source, target, check=True)
    edited = target.read_text() + "# by hand\n"
    target.write_text(edited)
    assert not generator.refresh(source, target, check=True)
    assert target.read_text() == edited
    source.unlink()
    assert not generator.refresh(source, target, check=True)


def test_an_unwritten_pair_is_no_difference(generator: ModuleType, tmp_path: Path):
    """A pair in the table may still lack its source."""
    assert generator.refresh(tmp_path / "async_y.py", tmp_path / "sync_y.py", check=True)
