"""Settings are checked once, by the name of the field."""

import pytest

from onecommit.errors import InvalidArgument
from onecommit.worker.settings import WorkerSettings, parse_queue


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queues", {}),
        ("queues", {"": 1}),
        ("queues", {"x" * 300: 1}),
        ("queues", {"a\0b": 1}),
        ("queues", {"a": 0}),
        ("queues", {"a": 100_000}),
        ("queues", {"a": True}),
        ("queues", {"a": "20"}),
        ("queues", {7: 1}),
        ("name", "x" * 300),
        ("drain_budget", 0),
        ("threads", -1),
        ("heartbeat_interval", 25.0),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name(field, value):
    settings = {"queues": {"default": 1}} | {field: value}
    with pytest.raises(InvalidArgument) as refused:
        WorkerSettings(**settings)
    assert refused.value.field == field


def test_settings_cannot_change_through_the_mapping_they_were_given():
    queues = {"a": 1}
    settings = WorkerSettings(queues=queues)
    queues["b"] = 2
    assert dict(settings.queues) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("email", ("email", 20)),
        ("email:5", ("email", 5)),
        ("a:b:7", ("a:b", 7)),
        ("a:b", ("a:b", 20)),
    ],
)
def test_a_queue_on_the_command_line(text, expected):
    assert parse_queue(text) == expected


@pytest.mark.parametrize("text", ["", ":5", "email:0", "email:999999"])
def test_a_queue_that_cannot_be_is_refused(text):
    with pytest.raises(InvalidArgument):
        parse_queue(text)
