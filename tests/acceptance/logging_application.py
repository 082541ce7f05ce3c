"""An application whose only handler logs and fails."""

from onecommit import App, JobContext

app = App()


@app.job(queue="logged")
async def fail(ctx: JobContext, to: str) -> None:
    """What it logs is the application's own; what it raises quotes its argument."""
    ctx.log.info("two\nlines of [%s]", "onecommit", extra={"colour": to})
    try:
        {}["a"]
    except KeyError:
        ctx.log.exception("caught")
    raise ValueError(to)
