"""A throw-away local PostgreSQL: our own lifecycle over the programs of any installation."""

from onecommit.embedded.failures import (
    DataDirectoryRefused,
    EmbeddedPostgresError,
    ServerNotRunning,
    ServerRunning,
)
from onecommit.embedded.postgres import EmbeddedPostgres, StopMode
from onecommit.embedded.server import Server

__all__ = [
    "DataDirectoryRefused",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "Server",
    "ServerNotRunning",
    "ServerRunning",
    "StopMode",
]
