"""What the demo's provider did, kept on disk: the other side of the ledger."""

import json
import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Operation(StrEnum):
    """What the provider offers. Each promises something else about a repeated call."""

    LIMIT = "limit"
    """Sets a value: a second call sets the same one."""
    CHARGE = "charge"
    """Takes a key and answers a known one with its first receipt."""
    TRANSFER = "transfer"
    """Done again at every call; can be looked up by its reference."""
    LETTER = "letter"
    """Done again at every call; nobody can look it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """One call as the provider saw it."""

    operation: str
    key: str
    """The `activity_id` of the Work."""
    order: int
    cents: int
    effect: bool
    """Whether the call changed something at the provider."""
    receipt: str | None
    """Of this effect, or of the earlier one that the call repeats."""
    answered: bool


class Journal:
    """The provider's memory: a file with a line for each call, on disk before the call is answered."""

    def __init__(self, path: Path) -> None:
        self._calls = read_journal(path)
        self._file = path.open("a", encoding="utf-8")
        # A line that a crash cut off was never answered, and nothing is written behind it.
        self._file.truncate(sum(map(len, _whole_lines(path))))

    def knows(self, key: str) -> bool:
        """Whether it was called with the key before."""
        return any(call.key == key for call in self._calls)

    def receipt(self, key: str) -> str | None:
        """The receipt of the key's first effect."""
        return next((call.receipt for call in self._calls if call.key == key and call.effect), None)

    def record(
        self,
        operation: Operation,
        *,
        key: str,
        order: int,
        cents: int,
        applies: bool,
        answers: bool,
    ) -> str | None:
        """Write a call down, its effect included, and return its receipt."""
        done = self._already(operation, key=key, order=order, cents=cents)
        effect = applies and done is None
        receipt = f"{operation}-{len(self._calls) + 1}" if effect else done
        call = ProviderCall(
            operation=operation.value,
            key=key,
            order=order,
            cents=cents,
            effect=effect,
            receipt=receipt,
            answered=answers,
        )
        self._file.write(json.dumps(asdict(call)) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._calls.append(call)
        return receipt

    def _already(self, operation: Operation, *, key: str, order: int, cents: int) -> str | None:
        """The receipt of the effect that makes this call change nothing, as the operation promises."""
        if operation is Operation.CHARGE:
            return self.receipt(key)
        if operation is Operation.LIMIT:
            return self._limit(order, cents)
        return None

    def _limit(self, order: int, cents: int) -> str | None:
        """The receipt of the limit that an order has, if it is this one."""
        for call in reversed(self._calls):
            if call.operation == Operation.LIMIT and call.order == order and call.effect:
                return call.receipt if call.cents == cents else None
        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_journal(path: Path) -> list[ProviderCall]:
    """Every call so far; a line that is being written counts as not yet there."""
    return [ProviderCall(**json.loads(line)) for line in _whole_lines(path)]


def _whole_lines(path: Path) -> list[bytes]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith(b"\n")]
