"""What the embedded PostgreSQL raises when it refuses or fails."""

from onecommit.errors import OnecommitError


class EmbeddedPostgresError(OnecommitError):
    """The embedded PostgreSQL could not do what was asked."""

    code = "OC100"


class DataDirectoryRefused(EmbeddedPostgresError):
    """The directory is not one that this layer made, or not one that it can use; nothing was touched."""


class ServerRunning(EmbeddedPostgresError):
    """Another process runs a server on this data directory."""

    remedy = "Stop it with `onecommit embedded stop`, or choose another data directory."


class ServerNotRunning(EmbeddedPostgresError):
    """No server runs on this data directory."""

    remedy = "Start it with `onecommit embedded start`."
