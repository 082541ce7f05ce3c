"""A job whose being enqueued is all that counts."""

from typing import Any

from onecommit.app.app import App
from onecommit.app.context import JobContext
from onecommit.domain.follow_up import JobTransition


class Trail:
    """A job that notes what it was enqueued with, on a queue that the test's workers serve or not."""

    def __init__(self, app: App, *, queue: str) -> None:
        @app.job(queue=queue)
        async def note(ctx: JobContext, what: str, job: int) -> None:
            """Only its being there counts."""

        self._app = app
        self.job = note
        self.queue = queue

    def __call__(self, about: JobTransition) -> Any:
        return self.job.follow_up(what=str(about.transition), job=about.job_id)

    async def of(self, job: Any) -> list[str]:
        """What was noted about a job, in any state."""
        found = await self._app.jobs.list(queue=self.queue, kind="note", limit=1_000)
        views = [await self._app.jobs.get(view.job_id) for view in found]
        return [view.args["what"] for view in views if view.args["job"] == job.job_id]
