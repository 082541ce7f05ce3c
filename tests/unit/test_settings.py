"""Settings say what is wrong with them, and never print the DSN."""

from datetime import timedelta
from uuid import UUID

import pytest

from onecommit import InvalidArgument
from onecommit.domain.settings import StoreSettings
from onecommit.errors import UsageError
from onecommit.store.connecting import connection_string

STORE = "00000000-0000-0000-0000-000000000001"


def test_the_environment_completes_what_the_code_leaves_open():
    environment = {
        "ONECOMMIT_DSN": "host=elsewhere",
        "ONECOMMIT_STORE_ID": STORE,
        "ONECOMMIT_EPOCH": "17",
    }
    settings = StoreSettings(dsn="host=here").completed(environment)
    assert (settings.dsn, settings.store_id, settings.epoch) == ("host=here", UUID(STORE), 17)
    assert StoreSettings().completed(environment).dsn == "host=elsewhere"
    assert StoreSettings(epoch=3).completed(environment).epoch == 3


@pytest.mark.parametrize(
    ("environment", "field"),
    [
        ({"ONECOMMIT_STORE_ID": "not-a-uuid"}, "ONECOMMIT_STORE_ID"),
        ({"ONECOMMIT_EPOCH": "-1"}, "ONECOMMIT_EPOCH"),
        ({"ONECOMMIT_EPOCH": "latest"}, "ONECOMMIT_EPOCH"),
    ],
)
def test_a_bad_variable_is_named(environment, field):
    with pytest.raises(InvalidArgument) as caught:
        StoreSettings().completed(environment)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": ""},
        {"schema": "x" * 64},
        {"schema": "a\0b"},
        {"max_connections": 0},
        {"operation_timeout": timedelta(0)},
        {"connect_timeout": timedelta(seconds=-1)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_bad_setting_is_named(wrong):
    with pytest.raises(InvalidArgument) as caught:
        StoreSettings(**wrong)
    assert caught.value.field in wrong


def test_a_missing_dsn_says_how_to_set_it():
    with pytest.raises(UsageError, match="ONECOMMIT_DSN"):
        connection_string(StoreSettings())


def test_an_unreadable_dsn_is_not_repeated():
    with pytest.raises(UsageError) as caught:
        connection_string(StoreSettings(dsn="password=hunter2 nonsense"))
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


def test_the_dsn_stays_out_of_the_representation():
    assert "hunter2" not in repr(StoreSettings(dsn="password=hunter2"))


def test_what_the_dsn_says_stands_before_our_defaults():
    text = connection_string(StoreSettings(dsn="host=h connect_timeout=3"))
    assert "connect_timeout=3" in text
    assert "application_name=onecommit" in text
