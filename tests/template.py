"""What the template database holds."""

from onecommit import schema


def install_schema(dsn: str) -> None:
    """Install the Onecommit schema and activate its first epoch."""
    schema.apply(dsn)
    schema.initialize_epoch(dsn, actor="tests", reason="template database")
