"""What the demo tells while it runs, and how it waits."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onecommit.demo.children import DemoStalled

_PAUSE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that has just happened, or how far a part has got."""

    part: str
    done: int
    total: int
    news: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a part of the demo has got, by a count in the database."""

    part: str
    total: int
    count: Callable[[], int]
    budget: float
    """Seconds that each wait may last."""

    def tell(self, news: str) -> Step:
        """A step with a piece of news."""
        return Step(part=self.part, done=self.count(), total=self.total, news=news)

    def watch(self, reached: Callable[[int], bool]) -> Iterator[Step]:
        """Steps until what is done is enough, or something else has happened."""
        give_up = time.monotonic() + self.budget
        while not reached(done := self.count()):
            yield Step(part=self.part, done=done, total=self.total)
            if time.monotonic() > give_up:
                raise DemoStalled(
                    f"{self.part}: {done} of {self.total} after {self.budget:.0f} seconds"
                )
            time.sleep(_PAUSE)
        yield Step(part=self.part, done=done, total=self.total)
