"""Starts a supervisor with its postgres and waits until the server accepts connections."""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onecommit.embedded.account import ServerAccount, server_environment
from onecommit.embedded.binaries import Binaries
from onecommit.embedded.directory import DataDirectory, make_temporary
from onecommit.embedded.failures import EmbeddedPostgresError
from onecommit.embedded.supervisor import STAY, Order
from onecommit.embedded.supervisor_process import SupervisorProcess

ADDRESS = "127.0.0.1"
PORT_ATTEMPTS = 20
START_SECONDS = 60.0
STATUS_LINE = 7
TAKEN = "could not create any TCP/IP sockets"


class PortTaken(Exception):
    """Another program was quicker to listen on the port; never seen outside of this file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """Everything that stays the same while ports are tried."""

    directory: DataDirectory
    binaries: Binaries
    account: ServerAccount
    lock: int
    detached: bool
    temporary: bool

    def launch(self, preferred_port: int | None) -> SupervisorProcess:
        """Start the server on the preferred port, or on any that is free."""
        _rotate(self.directory.log_file)
        for port in _candidate_ports(preferred_port):
            try:
                return self._attempt(port)
            except PortTaken:
                continue
        raise EmbeddedPostgresError(
            f"none of {PORT_ATTEMPTS} ports on {ADDRESS} could be used",
            remedy=f"Look into {self.directory.log_file}.",
        )

    def _attempt(self, port: int) -> SupervisorProcess:
        socket_directory = make_temporary(self.account)
        self.account.take(socket_directory)
        with self.directory.log_file.open("ab") as log:
            log_start = log.tell()
            supervisor = SupervisorProcess.start(lock=self.lock, log=log)
        try:
            supervisor.tell(self._order(port, socket_directory).to_json())
            self._wait_until_ready(supervisor, log_start)
            if self.detached:
                supervisor.tell(STAY)
        except BaseException:
            supervisor.release()
            raise
        return supervisor

    def _order(self, port: int, socket_directory: Path) -> Order:
        return Order(
            command=[
                str(self.binaries.program("postgres")),
                *("-D", str(self.directory.cluster)),
                *("-c", f"config_file={self.directory.settings_file}"),
                *("-c", f"listen_addresses={ADDRESS}"),
                *("-c", f"port={port}"),
                *("-c", f'unix_socket_directories="{socket_directory}"'),
            ],
            environment=server_environment(os.environ),
            user=self.account.uid,
            group=self.account.gid,
            log=str(self.directory.log_file),
            lock=self.lock,
            port=port,
            socket_directory=str(socket_directory),
            owner=None if self.detached else os.getpid(),
            orphan_signal=signal.SIGQUIT if self.temporary else signal.SIGINT,
            remove=str(self.directory.path) if self.temporary else None,
        )

    def _wait_until_ready(self, supervisor: SupervisorProcess, log_start: int) -> None:
        """Watch the status that postgres keeps in its pid file: no connection, no password needed."""
        deadline = time.monotonic() + START_SECONDS
        while not _is_ready(self.directory.cluster):
            if supervisor.has_ended(within=0.01):
                raise self._start_failure(log_start)
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"the server was not ready after {START_SECONDS:.0f} seconds",
                    remedy=f"Look into {self.directory.log_file}.",
                )

    def _start_failure(self, log_start: int) -> Exception:
        log = self.directory.log_file.read_bytes()[log_start:].decode(errors="replace")
        if TAKEN in log:
            return PortTaken()
        ending = " | ".join(log.splitlines()[-4:])
        return EmbeddedPostgresError(
            f"the server did not start: {ending}", remedy="Mend what it names, then start again."
        )


def _is_ready(cluster: Path) -> bool:
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready"


def _rotate(log: Path) -> None:
    """Keep the log of the run before, so that a log can be read whole and never grows for ever."""
    with contextlib.suppress(FileNotFoundError):
        log.replace(log.with_suffix(".log.1"))


def _candidate_ports(preferred: int | None) -> Iterator[int]:
    if preferred is not None:
        yield preferred
    for _ in range(PORT_ATTEMPTS):
        yield free_port()


def free_port() -> int:
    """A port that was free a moment ago; whoever is told to use it may still find it taken."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        port: int = probe.getsockname()[1]
        return port
