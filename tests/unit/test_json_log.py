"""The fields of an event stand beside those of its line, so none may have the same name."""

from dataclasses import fields

from onecommit.telemetry import events

OF_THE_LINE = {"at", "level", "logger", "name", "message", "exception"}


def test_no_field_of_an_event_hides_one_of_its_line():
    kinds = [
        each
        for each in vars(events).values()
        if isinstance(each, type) and issubclass(each, events.Event)
    ]
    assert len(kinds) > 40
    assert {
        (each.__name__, field.name)
        for each in kinds
        for field in fields(each)
        if field.name in OF_THE_LINE
    } == set()
