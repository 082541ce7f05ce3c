"""Starts one postgres, waits for it, and takes it down when its owner is gone.

A program of its own: run by path with `python -I -S`, so it imports the standard library only. It reads
one `Order` from its standard input. After that, the input tells by its end that the owner died, unless
`STAY` came before; the standard output, on which nothing is written, tells by its end that the
supervisor is gone.

Signals: SIGTERM and SIGINT ask for a fast shutdown, SIGQUIT for an immediate one, SIGUSR1 kills postgres.
Whatever was asked, the supervisor ends only when no process of the server is left.
"""

import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

ASKED = {
    signal.SIGTERM: signal.SIGINT,
    signal.SIGINT: signal.SIGINT,
    signal.SIGQUIT: signal.SIGQUIT,
    signal.SIGUSR1: signal.SIGKILL,
}
# What postgres is sent, from the mildest on, and the seconds that it has before the next.
SEVERITY = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
PATIENCE = {signal.SIGINT: 30.0, signal.SIGQUIT: 10.0, signal.SIGKILL: 10.0}
STAY = "stay\n"
LEFTOVER_SECONDS = 1.0
GIVE_UP_SECONDS = 30.0
OWNER_CHECK_SECONDS = 1.0

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to run and when to stop it."""

    command: list[str]
    environment: dict[str, str]
    user: int | None
    group: int | None
    log: str
    lock: int
    """Descriptor of the held lock; every process of the server inherits it."""
    port: int
    socket_directory: str
    owner: int | None
    """Process to die with; None for a server that stays once it is told so."""
    orphan_signal: int
    remove: str | None
    """Directory to delete when the owner died without stopping the server."""

    def to_json(self) -> str:
        """One line for the supervisor's input."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def read(cls, descriptor: int) -> Self:
        """The line that `to_json` wrote."""
        line = b""
        while not line.endswith(b"\n"):
            chunk = os.read(descriptor, 65536)
            if not chunk:
                sys.exit("the owner left before it said what to run")
            line += chunk
        return cls(**json.loads(line))


class Supervisor:
    """Holds one postgres from its start until its last process has gone."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._selector = selectors.DefaultSelector()
        self._ended: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._postmaster = 0
        self._postmaster_gone_at: float | None = None
        self._sent: signal.Signals | None = None
        self._deadline: float | None = None
        self._orphaned = False

    def run(self) -> None:
        """Start postgres and return when nothing of it is left."""
        try:
            self._record_myself()
            self._listen()
            self._start()
            while not self._finished():
                self._wait()
                self._reap()
                self._notice_owner_death()
                self._lose_patience()
                self._kill_leftovers()
        finally:
            self._clean_up()

    def _record_myself(self) -> None:
        """Tell other processes, through the lock's file, whom to signal and where the server listens."""
        record = {
            "supervisor": os.getpid(),
            "port": self._order.port,
            "socket_directory": self._order.socket_directory,
        }
        written = os.pwrite(self._order.lock, json.dumps(record).encode(), 0)
        os.ftruncate(self._order.lock, written)

    def _listen(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for number in (*ASKED, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._selector.register(reader, selectors.EVENT_READ, "signals")
        self._selector.register(0, selectors.EVENT_READ, "owner")

    def _start(self) -> None:
        """Start postgres with two descriptors that all its processes keep open: the lock and `alive`."""
        become_subreaper()
        reader, alive = os.pipe()
        with Path(self._order.log).open("ab") as log:
            # Kept: a Popen that is forgotten reaps its child, and the loop would never hear of its end.
            self._process = subprocess.Popen(
                self._order.command,
                env=self._order.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._order.user,
                group=self._order.group,
                extra_groups=None if self._order.user is None else [],
                pass_fds=(self._order.lock, alive),
                preexec_fn=death_pact(signal.SIGQUIT),  # noqa: PLW1509 - this process has one thread
            )
        os.close(alive)
        self._postmaster = self._process.pid
        self._selector.register(reader, selectors.EVENT_READ, "server")

    def _finished(self) -> bool:
        if self._postmaster_gone_at is None:
            return False
        gave_up = time.monotonic() > self._postmaster_gone_at + GIVE_UP_SECONDS
        return "server" in self._ended or gave_up

    def _wait(self) -> None:
        for key, _ in self._selector.select(self._timeout()):
            received = os.read(key.fd, 4096)
            if not received:
                self._selector.unregister(key.fd)
                self._ended.add(key.data)
            elif key.data == "signals":
                self._obey(received)
            elif received == STAY.encode():
                self._selector.unregister(key.fd)

    def _timeout(self) -> float | None:
        if self._postmaster_gone_at is not None:
            return 0.05
        if self._deadline is not None or self._order.owner is not None:
            return OWNER_CHECK_SECONDS
        return None

    def _obey(self, numbers: bytes) -> None:
        for number in numbers:
            if number in ASKED:
                self._send(ASKED[signal.Signals(number)])

    def _send(self, number: signal.Signals) -> None:
        """Pass a shutdown on to postgres, unless one at least as severe was sent before."""
        if self._postmaster_gone_at is not None:
            return
        if self._sent is None or SEVERITY.index(number) > SEVERITY.index(self._sent):
            self._sent = number
            self._deadline = time.monotonic() + PATIENCE[number]
            os.kill(self._postmaster, number)

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._postmaster:
                self._postmaster_gone_at = time.monotonic()

    def _notice_owner_death(self) -> None:
        """By the end of our input, or by our adoption when a fork of the owner still holds that open."""
        if self._orphaned:
            return
        adopted = self._order.owner is not None and os.getppid() != self._order.owner
        if adopted or "owner" in self._ended:
            self._orphaned = True
            self._send(signal.Signals(self._order.orphan_signal))

    def _lose_patience(self) -> None:
        if self._sent is None or self._deadline is None or time.monotonic() < self._deadline:
            return
        self._send(SEVERITY[min(SEVERITY.index(self._sent) + 1, len(SEVERITY) - 1)])

    def _kill_leftovers(self) -> None:
        """A backend busy with computing does not notice that its postmaster died."""
        if self._postmaster_gone_at is None:
            return
        if time.monotonic() > self._postmaster_gone_at + LEFTOVER_SECONDS:
            for pid in children_of(os.getpid()):
                os.kill(pid, signal.SIGKILL)

    def _clean_up(self) -> None:
        shutil.rmtree(self._order.socket_directory, ignore_errors=True)
        if self._orphaned and self._order.remove is not None:
            shutil.rmtree(self._order.remove, ignore_errors=True)


def become_subreaper() -> None:
    """Inherit the server's processes when their postmaster dies (Linux; elsewhere init does)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def death_pact(number: signal.Signals) -> Callable[[], None]:
    """What a new child runs so that the kernel shuts it down when we are killed (Linux only)."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def agree() -> None:
        if prctl is None:
            return
        prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(1)

    return agree


def children_of(parent: int) -> Iterator[int]:
    """Process ids whose parent this is, as /proc tells them; nothing where there is no /proc."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            yield int(entry.parent.name)


def main() -> None:
    """Read the order, let go of the starter if the server is to stay, and supervise."""
    order = Order.read(0)
    if order.owner is None and os.fork() != 0:
        os._exit(0)
    Supervisor(order).run()


if __name__ == "__main__":
    main()
