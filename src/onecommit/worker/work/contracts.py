"""The contracts that a worker runs, and how many of each at a time."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from onecommit.app.work import Work
from onecommit.app.work_registry import WorkRegistry
from onecommit.domain.work_attempt import ClaimedWork
from onecommit.errors import UsageError

AnyWork = Work[Any, Any]


class Contracts:
    """What this worker may discover, with the slots that each name has; a name's versions share them.

    Raises:
        UsageError: A name stands for nothing that the App can run.
    """

    def __init__(self, registry: WorkRegistry, concurrency: Mapping[str, int]) -> None:
        registry.check()
        self._concurrency = concurrency
        self._taken: Counter[str] = Counter()
        self._works: dict[tuple[str, str], AnyWork] = {
            work.contract.key: work
            for work in registry.executable
            if work.contract.name in concurrency
        }
        unknown = sorted(concurrency.keys() - {name for name, _ in self._works})
        if unknown:
            raise UsageError(
                f"no Work with an executor is registered as {', '.join(unknown)}",
                remedy="Import the module that registers it, or repair the name.",
            )

    def __len__(self) -> int:
        return len(self._works)

    def of(self, claimed: ClaimedWork) -> AnyWork:
        """The Work of a claim; what is not ours was never discovered."""
        return self._works[claimed.contract_name, claimed.contract_version]

    def open(self) -> list[tuple[str, str]]:
        """Those that have a free slot, by name and version."""
        return [key for key in self._works if self.free(key[0])]

    def free(self, name: str) -> int:
        """The free slots of a name."""
        return self._concurrency[name] - self._taken[name]

    def take(self, name: str) -> bool:
        """Take a slot; false if there is none."""
        if not self.free(name):
            return False
        self._taken[name] += 1
        return True

    def give_back(self, name: str) -> None:
        """Free a slot."""
        self._taken[name] -= 1
