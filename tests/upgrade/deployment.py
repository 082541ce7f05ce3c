"""A strict store, and processes of the previous release and of this one that use it, each with a login for its part."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.chaos.processes import PATIENCE, ROOT, wait_until
from tests.schema.provisioned import Provisioned

PRODUCER = ("producer", "work_acceptor")
WORKER = ("executor", "maintenance", "work_dispatcher", "work_runtime")
# Completed attempts by queue and by the release of the worker that claimed them.
COMPLETED = """
select count(*) from onecommit.claim c
join onecommit.worker w using (worker)
join onecommit.lane l on l.lane = c.lane
cross join unnest(c.seqs) s (seq)
join onecommit.completion d on d.slot = c.slot and d.lane = c.lane and d.seq = s.seq and d.outcome = 'completed'
where l.queue = %s and w.info ->> 'version' = %s
"""


@dataclass(kw_only=True)
class Running:
    """A process and what it says."""

    process: subprocess.Popen[str]
    errors: Path

    def said(self) -> str:
        return self.errors.read_text()

    def end(self) -> int:
        """SIGTERM, and its exit code after the drain."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def count(self) -> int:
        """Let a producer end; how often it has enqueued."""
        out, _ = self.process.communicate("", timeout=PATIENCE)
        assert self.process.returncode == 0, self.said()
        return int(out)


@dataclass(kw_only=True)
class Deployment:
    """Versions are directories for PYTHONPATH."""

    store: Provisioned
    directory: Path
    identity: dict[str, str] = field(default_factory=dict)
    _running: list[Running] = field(default_factory=list)

    def environment(self, version: Path, dsn: str) -> dict[str, str]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("PG", "ONECOMMIT_"))}
        return kept | self.identity | {"ONECOMMIT_DSN": dsn, "PYTHONPATH": str(version)}

    def command(
        self, version: Path, *arguments: str, dsn: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `onecommit`, as the migrator unless another login is given, to its end."""
        env = self.environment(version, self.store.migrator_dsn if dsn is None else dsn)
        command = [sys.executable, "-m", "onecommit", *arguments]
        return subprocess.run(
            command, env=env, cwd=ROOT, text=True, capture_output=True, timeout=PATIENCE
        )

    def done(self, version: Path, *arguments: str, dsn: str | None = None) -> str:
        """The same, of a command that succeeds."""
        result = self.command(version, *arguments, dsn=dsn)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def worker(self, version: Path, name: str) -> Running:
        return self._start(
            version, "onecommit", "worker", "tests.upgrade.application:app", "--name", name,
            "--rescue-seconds", "10", members=WORKER,
        )  # fmt: skip

    def producer(self, version: Path, first: int) -> Running:
        return self._start(version, "tests.upgrade.application", str(first), members=PRODUCER)

    def _start(self, version: Path, *arguments: str, members: tuple[str, ...]) -> Running:
        errors = self.directory / f"process_{len(self._running)}.log"
        stream: IO[str]
        with errors.open("w") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env=self.environment(version, self.store.login(*members))
                | {"FINALIZER_DSN": self.store.login("finalizer")},
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            )
        running = Running(process=process, errors=errors)
        self._running.append(running)
        return running

    def everything_said(self) -> str:
        return "".join(running.said() for running in self._running)

    def kill(self) -> None:
        for running in self._running:
            running.process.kill()
            running.process.communicate()

    # --- looking

    def value(self, query: str, *parameters: Any) -> Any:
        return self.store.admin.execute(query, parameters).fetchone()[0]

    def completed(self, queue: str, release: str) -> int:
        return self.value(COMPLETED, queue, release)

    def progress(self, *wanted: tuple[str, str]) -> None:
        """Wait until each of these, a queue and a release, has completed more than now."""
        before = {each: self.completed(*each) for each in wanted}
        for each, count in before.items():
            wait_until(lambda: self.completed(*each) > count, what=f"{each} goes on")  # noqa: B023

    def rows(self) -> dict[str, Any]:
        """Everything that a process could write: the rows of each table, and where each sequence stands."""
        names = self.store.admin.execute(
            "select c.oid::regclass::text, c.relkind::text from pg_class c"
            " where c.relnamespace = 'onecommit'::regnamespace and c.relkind in ('r', 'S')"
        ).fetchall()
        queries = {
            "r": "select md5(coalesce(string_agg(t::text, ',' order by t::text), '')) from {} t",
            "S": "select last_value from {}",
        }
        return {name: self.value(queries[kind].format(name)) for name, kind in names}


@contextmanager
def deployment(store: Provisioned, directory: Path) -> Iterator[Deployment]:
    deployed = Deployment(store=store, directory=directory)
    try:
        yield deployed
    finally:
        deployed.kill()
