"""The pool of lanes, from which queues take one for each priority they use."""

from psycopg import errors, sql

from onecommit.domain.arguments import checked_count
from onecommit.errors import InvalidArgument
from onecommit.schema.naming import DEFAULT_SCHEMA, checked_schema_name
from onecommit.schema.session import open_connection

_ADD = sql.SQL("select {}.add_lanes(%s)")


def add_lanes(dsn: str, count: int, *, schema: str = DEFAULT_SCHEMA) -> int:
    """Create more lanes and return how many are free now; needs the owner of the schema.

    Raises:
        InvalidArgument: The pool would exceed 1,024 lanes.
    """
    checked_count(count, field="count")
    statement = _ADD.format(sql.Identifier(checked_schema_name(schema)))
    with open_connection(dsn) as connection:
        try:
            row = connection.execute(statement, (count,)).fetchone()
        except errors.InvalidParameterValue as error:
            raise InvalidArgument("the pool holds at most 1,024 lanes", field="count") from error
    return int(row[0]) if row else 0
