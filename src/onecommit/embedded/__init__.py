"""A throw-away local PostgreSQL: our own lifecycle over the programs of any installation."""

from onecommit.embedded.directory import default_data_dir
from onecommit.embedded.failures import (
    DataDirectoryRefused,
    EmbeddedPostgresError,
    ServerNotRunning,
    ServerRunning,
)
from onecommit.embedded.postgres import EmbeddedPostgres
from onecommit.embedded.server import Server, StopMode

__all__ = [
    "DataDirectoryRefused",
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "Server",
    "ServerNotRunning",
    "ServerRunning",
    "StopMode",
    "default_data_dir",
]
