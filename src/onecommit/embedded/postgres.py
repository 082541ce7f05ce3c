"""A local PostgreSQL server that starts in a second or two and leaves nothing behind."""

import os
import signal
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from onecommit.domain.queue import checked_name
from onecommit.embedded.account import ServerAccount, server_environment
from onecommit.embedded.binaries import Binaries
from onecommit.embedded.cluster import checked_settings, prepare_cluster, write_settings
from onecommit.embedded.directory import DataDirectory, checked_path, make_temporary
from onecommit.embedded.failures import EmbeddedPostgresError, ServerNotRunning
from onecommit.embedded.launcher import Launcher
from onecommit.embedded.server import DEFAULT_DATABASE, STOP_SIGNALS, Server, StopMode, checked_mode
from onecommit.embedded.supervisor_process import SupervisorProcess
from onecommit.errors import UsageError


class EmbeddedPostgres:
    """One PostgreSQL server of our own, on a free port of 127.0.0.1 and a Unix socket.

    Without `data_dir` the data is temporary and deleted when the server stops. With one, the directory
    must be new, empty, or made by this class before. `bin_dir` names the programs to run instead of
    PostgreSQL 18 from the wheel. `settings` are lines of postgresql.conf.

    When this process ends, however it ends, the server is stopped; `start(detached=True)` leaves it on.
    See docs/how-to/embedded-postgresql.md. Not for use from several threads at once.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        bin_dir: str | os.PathLike[str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._temporary = data_dir is None
        self._directory = None if data_dir is None else DataDirectory.at(data_dir)
        self._bin_dir = None if bin_dir is None else checked_path(bin_dir, field="bin_dir")
        self._settings = checked_settings({} if settings is None else settings)
        self._binaries: Binaries | None = None
        self._server: Server | None = None
        self._supervisor: SupervisorProcess | None = None
        self._starter = os.getpid()

    def __repr__(self) -> str:
        where = self._directory.path if self._directory else "temporary"
        return f"<{type(self).__name__} {where}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, *, detached: bool = False) -> Self:
        """Start the server and return when it accepts connections.

        It keeps the port of its last run if that is still free. A detached server stays when this
        process ends; `Server.find` finds it again.
        """
        if detached and self._temporary:
            raise UsageError(
                "a detached server cannot have temporary data", remedy="Give it a data directory."
            )
        account = ServerAccount.choose()
        self._binaries = Binaries.find(self._bin_dir, account=account)
        directory = self._directory or DataDirectory(make_temporary(account))
        directory.claim(account)
        try:
            self._launch(directory, self._binaries, account, detached=detached)
        except BaseException:
            if self._directory is None:
                directory.remove()
            raise
        self._directory = directory
        self._starter = os.getpid()
        return self

    def _launch(
        self,
        directory: DataDirectory,
        binaries: Binaries,
        account: ServerAccount,
        *,
        detached: bool,
    ) -> None:
        with directory.locked() as lock:
            self._release_supervisor()  # of a server that crashed or was killed
            durable = not self._temporary
            prepare_cluster(directory, binaries=binaries, account=account, durable=durable)
            write_settings(directory.settings_file, self._settings)
            directory.forget_sockets()
            launcher = Launcher(
                directory=directory,
                binaries=binaries,
                account=account,
                lock=lock,
                detached=detached,
                temporary=self._temporary,
            )
            latest = directory.record()
            self._supervisor = launcher.launch(latest.port if latest else None)
            self._server = Server.latest(directory)

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server this object started; delete its data if temporary. Again is harmless.

        `fast` disconnects everybody and writes a checkpoint; `immediate` is a crash, recovered from at
        the next start. Temporary data is not worth a checkpoint, whatever the mode. In a forked child
        this does nothing: the server is the parent's.
        """
        number = checked_mode(mode)
        self._end(STOP_SIGNALS["immediate"] if self._temporary else number)
        if self._temporary and self._directory and self._starter == os.getpid():
            self._directory.remove()
            self._directory = None
        self._server = None

    def restart(self, mode: StopMode = "immediate") -> None:
        """Stop and start again on the same data and port."""
        self._end(checked_mode(mode))
        self.start()

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL; return when no process of the server is left.

        The data stays, also if temporary: `start` recovers from the crash, `stop` deletes.
        """
        self._end(signal.SIGUSR1)

    def _end(self, number: signal.Signals) -> None:
        if self._server is not None and self._starter == os.getpid():
            self._server.end(number)
            self._release_supervisor()

    def _release_supervisor(self) -> None:
        if self._supervisor is not None:
            self._supervisor.release()
            self._supervisor = None

    @property
    def server(self) -> Server:
        """Where the server listens; also known after `kill`."""
        if self._server is None:
            raise ServerNotRunning("this server is not started", remedy="Call start() first.")
        return self._server

    def dsn(self, dbname: str = DEFAULT_DATABASE) -> str:
        """A connection string for the superuser over TCP. It holds the password."""
        return self.server.dsn(dbname)

    def create_database(self, name: str, *, template: str | None = None) -> None:
        """Create a database, as a copy of `template` if given."""
        checked_name(name, field="name")
        if template is not None:
            checked_name(template, field="template")
        statement = 'create database :"name"' + (' template :"template"' if template else "")
        self._psql(statement, name=name, template=template or "")

    def _psql(self, statement: str, **variables: str) -> None:
        """Run one statement; psql quotes what it substitutes."""
        server = self.server
        binaries = self._binaries or Binaries.find(self._bin_dir, account=ServerAccount.choose())
        assigned = [f"--set={name}={value}" for name, value in variables.items()]
        result = subprocess.run(
            [str(binaries.program("psql")), "-Xq", "--set=ON_ERROR_STOP=1", *assigned],
            check=False,
            input=statement,
            capture_output=True,
            text=True,
            env=server_environment(os.environ) | server.connection_environment(DEFAULT_DATABASE),
        )
        if result.returncode != 0:
            raise EmbeddedPostgresError(" ".join(result.stderr.split()))
