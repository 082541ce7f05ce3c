"""The jobs that an application knows, and the follow-up functions of their kinds."""

import inspect
from collections.abc import Iterator, Mapping, Sequence

from onecommit.app.job_definition import JobDefinition
from onecommit.app.work_registry import WorkRegistry
from onecommit.domain.follow_up import FollowUpFunction, Transition, checked_transition
from onecommit.domain.queue import checked_name
from onecommit.errors import UsageError

Functions = Mapping[Transition, Sequence[FollowUpFunction]]


class FollowUpFunctions:
    """The functions of every kind, whether or not the kind is registered yet."""

    def __init__(self) -> None:
        self._functions: dict[str, dict[Transition, list[FollowUpFunction]]] = {}

    @property
    def kinds(self) -> set[str]:
        """The kinds that have any."""
        return set(self._functions)

    def add(self, kind: str, transition: Transition, function: FollowUpFunction) -> None:
        """Ask the function at this transition of the kind, after those that were added before."""
        if inspect.iscoroutinefunction(function) or not callable(function):
            raise UsageError(
                f"a follow-up function of {kind} is not a plain function",
                remedy="Write it with `def`: it decides what follows, handlers do the work.",
            )
        at = self._functions.setdefault(kind, {})
        at.setdefault(transition, []).append(function)

    def of(self, kind: str) -> Functions:
        """The functions of one kind."""
        return self._functions.get(kind, {})

    def check(self, definition: JobDefinition) -> None:
        """Refuse what the kind cannot have."""
        if definition.caller_owned and Transition.COMPLETED in self.of(definition.kind):
            raise _cannot_follow_completion(definition.kind)


class Registry:
    """Every kind of job that an App knows."""

    def __init__(self) -> None:
        self._definitions: dict[str, JobDefinition] = {}
        self.follow_ups = FollowUpFunctions()
        self.work = WorkRegistry()

    def add(self, definition: JobDefinition) -> None:
        """Register a kind; a name stands for one handler only."""
        if definition.kind in self._definitions:
            raise UsageError(
                f"a job named {definition.kind!r} is registered already",
                remedy='Give one of them another name: @app.job(name="..."). If its module or cell ran again,'
                " make the App there too, or start the process anew.",
            )
        self.follow_ups.check(definition)
        self._definitions[definition.kind] = definition

    def follow_up(self, kind: str, transition: Transition, function: FollowUpFunction) -> None:
        """Register a follow-up function; the kind itself may be registered before or after it."""
        transition = checked_transition(transition)
        definition = self.get(checked_name(kind, field="kind"))
        if (
            definition is not None
            and definition.caller_owned
            and transition is Transition.COMPLETED
        ):
            raise _cannot_follow_completion(kind)
        self.follow_ups.add(kind, transition, function)

    def get(self, kind: str) -> JobDefinition | None:
        """The definition of a kind, if this application knows it."""
        return self._definitions.get(kind)

    def __iter__(self) -> Iterator[JobDefinition]:
        return iter(self._definitions.values())

    def __len__(self) -> int:
        return len(self._definitions)

    @property
    def queues(self) -> set[str]:
        """The queues that the registered jobs go to by default."""
        return {definition.queue for definition in self}

    def check(self) -> None:
        """Resolve every annotation now, so that a worker does not find a mistake at the first job."""
        for definition in self:
            _ = definition.payload
        self.work.check()
        unknown = sorted(self.follow_ups.kinds - self._definitions.keys())
        if unknown:
            raise UsageError(
                f"follow-up functions are registered for {', '.join(unknown)}, but no such job is",
                remedy="Import the module that registers the job, or repair the name.",
            )


def _cannot_follow_completion(kind: str) -> UsageError:
    """Why a caller-owned kind has no follow-up functions on completed."""
    return UsageError(
        f"{kind} is caller-owned: its completion commits in the handler's own transaction, where no "
        "follow-up function can run",
        remedy="Enqueue in that transaction: await audit.in_tx(connection).enqueue(...).",
    )
