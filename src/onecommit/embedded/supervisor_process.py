"""The supervisor as its starter holds it."""

import contextlib
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, Self

from onecommit.embedded import supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorProcess:
    """A child process and two pipes: the end of its input tells it to stop, the end of its output that it did."""

    process: subprocess.Popen[bytes]
    input: int
    output: int

    @classmethod
    def start(cls, *, lock: int, log: IO[bytes]) -> Self:
        """Start the program; it waits for its order."""
        its_input, our_input = os.pipe()
        our_output, its_output = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__],
                stdin=its_input,
                stdout=its_output,
                stderr=log,
                pass_fds=(lock,),
                cwd="/",
                start_new_session=True,  # the terminal's Ctrl-C is for the application alone
            )
        finally:
            os.close(its_input)
            os.close(its_output)
        return cls(process=process, input=our_input, output=our_output)

    def tell(self, line: str) -> None:
        """Write a line to its input."""
        with contextlib.suppress(BrokenPipeError):  # it ended: its log says why
            os.write(self.input, line.encode())

    def has_ended(self, *, within: float) -> bool:
        """Whether it is gone; nothing is ever written on its output, so readable means closed."""
        output = select.poll()  # not select(), which fails beyond 1024 open files
        output.register(self.output, select.POLLIN | select.POLLHUP)
        return bool(output.poll(within * 1000))

    def release(self) -> None:
        """Close its input, on which it stops the server unless told to stay, and wait for what is ours."""
        os.close(self.input)
        self.process.wait()
        os.close(self.output)
