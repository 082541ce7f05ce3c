"""The Work that an application knows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onecommit.domain.work import Safety
from onecommit.errors import WorkRegistryRefused

if TYPE_CHECKING:
    from onecommit.app.work import Work


class WorkRegistry:
    """Every contract of an App by name and version."""

    def __init__(self) -> None:
        self._works: dict[tuple[str, str], Work[Any, Any]] = {}

    def add(self, work: "Work[Any, Any]") -> None:
        """Register Work; a name and version stand for one contract for ever."""
        known = self._works.get(work.contract.key)
        if known is not None:
            raise WorkRegistryRefused(
                f"{work.label} is registered already"
                + ("" if known.contract == work.contract else ", with another contract"),
                remedy="Give what has changed a new version; register each version once.",
            )
        self._works[work.contract.key] = work

    def get(self, name: str, version: str) -> "Work[Any, Any] | None":
        """The Work of a name and version, if this application knows it."""
        return self._works.get((name, version))

    def __iter__(self) -> "Iterator[Work[Any, Any]]":
        return iter(self._works.values())

    def __len__(self) -> int:
        return len(self._works)

    @property
    def executable(self) -> "list[Work[Any, Any]]":
        """What a worker of this application can run."""
        return [work for work in self if work.runs is not None]

    def check(self) -> None:
        """Raise for what a worker would find out at the first item only."""
        for work in self.executable:
            work.contract.check_types()
            needs = work.contract.safety == Safety.RECONCILE_BEFORE_RETRY
            if needs and work.reconciles is None:
                raise WorkRegistryRefused(
                    f"{work.label} is RECONCILE_BEFORE_RETRY and has no reconciler",
                    remedy="Register a function that finds out what the provider did: @work.reconciler.",
                )
