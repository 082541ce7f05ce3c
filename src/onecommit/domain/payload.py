"""Arguments and results as JSON, and back."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from onecommit.domain.signature import HandlerArgument
from onecommit.errors import InvalidArgument

LARGEST_PAYLOAD = 1_048_576
"""Bytes of JSON that one job may carry."""

_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_FIELD = re.compile(r"Object (?:missing required|contains unknown) field `([^`]*)`")
_QUOTES_VALUE = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)


def _encode_model(value: Any) -> Any:
    """A pydantic model as JSON values; called for types that msgspec does not know."""
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json")
    raise NotImplementedError


def _decode_model(expected: type, value: Any) -> Any:
    if not hasattr(expected, "model_validate"):
        raise NotImplementedError
    try:
        return expected.model_validate(value)
    except ValueError as error:
        raise ValueError(_problem_of(expected, error)) from None


def _problem_of(model: type, error: ValueError) -> str:
    """Where and why a pydantic model refused, without the value that its own text repeats."""
    details: list[dict[str, Any]] = getattr(error, "errors", list)()
    first = details[0] if details else {"loc": (), "type": "value_error"}
    where = ".".join(map(str, first["loc"]))
    return f"Expected a valid `{model.__name__}`, got {first['type']} for `{where}`"


_encoder = msgspec.json.Encoder(enc_hook=_encode_model)
_sorting_encoder = msgspec.json.Encoder(enc_hook=_encode_model, order="sorted")
_FAILURES = (msgspec.MsgspecError, TypeError, ValueError, NotImplementedError, RecursionError)


class Payload:
    """Turns the keyword arguments of one handler into JSON and back, checking them both times."""

    def __init__(self, arguments: Sequence[HandlerArgument]) -> None:
        self.names = tuple(argument.name for argument in arguments)
        self.defaults = {a.name: a.default for a in arguments if not a.required}
        self._decoder = msgspec.json.Decoder(_struct_of(arguments), dec_hook=_decode_model)

    def encode(self, arguments: Mapping[str, Any]) -> str:
        """The JSON of one job's arguments. What the worker could not decode is refused here."""
        try:
            encoded = _encoder.encode(arguments)
            self._decoder.decode(encoded)
        except _FAILURES as error:
            failure = error
        else:
            return _checked(encoded, arguments)
        raise _refusal(failure, arguments)

    def encode_all(self, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """The JSON of many jobs' arguments; an error names the position too."""
        texts = []
        for position, item in enumerate(items):
            try:
                texts.append(self.encode(item))
            except InvalidArgument as error:
                raise InvalidArgument(
                    f"job {position}: {error.message}", field=error.field, remedy=error.remedy
                ) from None
        return texts

    def decode(self, text: str) -> dict[str, Any]:
        """The keyword arguments of a job; those that it does not bring are left to the defaults."""
        try:
            found = msgspec.structs.asdict(self._decoder.decode(text))
        except _FAILURES as error:
            failure = error
        else:
            if self.defaults:
                return {name: value for name, value in found.items() if value is not msgspec.UNSET}
            return found
        raise _refusal(failure, {})

    def json_values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, defaults included, as JSON values: what a unique key is made of."""
        values = {**self.defaults, **arguments}
        return {name: _builtins(values[name]) for name in self.names}


class JsonValue:
    """Turns one value of a type into JSON and back, checking it both times.

    Keys and fields are sorted, so that equal values have equal bytes whatever order they were written in.
    """

    def __init__(self, expected: Any, *, what: str, largest: int) -> None:
        self._what = what
        self._largest = largest
        self._decoder = msgspec.json.Decoder(expected, dec_hook=_decode_model)

    def encode(self, value: Any) -> bytes:
        """The JSON of the value. What `decode` would refuse is refused here."""
        try:
            encoded = _sorting_encoder.encode(value)
            self._decoder.decode(encoded)
        except _FAILURES as error:
            failure = error
        else:
            return self._checked(encoded, value)
        raise _refusal(failure, {self._what: value}, whole=self._what)

    def decode(self, encoded: bytes) -> Any:
        """The value that was encoded, as its type."""
        try:
            return self._decoder.decode(encoded)
        except _FAILURES as error:
            failure = error
        raise _refusal(failure, {}, whole=self._what)

    def _checked(self, encoded: bytes, value: Any) -> bytes:
        if len(encoded) > self._largest:
            raise InvalidArgument(
                f"`{self._what}` is {len(encoded)} bytes of JSON",
                field=self._what,
                remedy=f"At most {self._largest} are accepted: store the data and pass its key.",
            )
        if b"null" in encoded and (fault := _bad_leaf({self._what: value})):
            raise fault
        return encoded


def encode_result(value: Any, *, what: str = "result") -> str | None:
    """The JSON text of a handler's result or progress; None stands for no result."""
    if value is None:
        return None
    try:
        encoded = _encoder.encode(value)
    except _FAILURES as error:
        failure = error
    else:
        return _checked(encoded, {what: value})
    raise _refusal(failure, {what: value})


def _struct_of(arguments: Sequence[HandlerArgument]) -> type[msgspec.Struct]:
    fields = [
        (a.name, a.type) if a.required else (a.name, a.type, msgspec.UNSET) for a in arguments
    ]
    return msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True, kw_only=True)


def _builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=_encode_model, str_keys=True)


def _checked(encoded: bytes, arguments: Mapping[str, Any]) -> str:
    """The text, if nothing in it was silently changed or cannot be stored."""
    text = encoded.decode()
    # NaN becomes null. Both suspicions are rarely true and the close look is slow.
    if len(encoded) > LARGEST_PAYLOAD or "null" in text or "\\u0000" in text:
        fault = _bad_leaf(arguments) or _excess(arguments, size=len(encoded))
        if fault is not None:
            raise fault
    return text


def _excess(arguments: Mapping[str, Any], *, size: int) -> InvalidArgument | None:
    if size <= LARGEST_PAYLOAD:
        return None
    largest = max(arguments, key=lambda name: len(_encoder.encode(arguments[name])))
    return InvalidArgument(
        f"`{largest}` makes the arguments {size} bytes of JSON",
        field=largest,
        remedy=f"At most {LARGEST_PAYLOAD} are accepted: store the data and pass its key.",
    )


def _bad_leaf(arguments: Mapping[str, Any]) -> InvalidArgument | None:
    for path, leaf in _leaves(arguments):
        problem = _problem_with(leaf)
        if problem:
            return InvalidArgument(f"`{path}` {problem}", field=path)
    return None


def _problem_with(leaf: Any) -> str | None:
    match leaf:
        case float() if not math.isfinite(leaf):
            return "is NaN or infinite, which JSON cannot hold"
        case str() if "\x00" in leaf:
            return "holds a NUL character, which PostgreSQL cannot store"
        case str() if any("\ud800" <= character <= "\udfff" for character in leaf):
            return "holds a lone surrogate, which UTF-8 cannot encode"
        case _:
            return None


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every text, number and key inside, with the path to it; keys are data and stay out of paths."""
    match value:
        case dict():
            for key, item in value.items():
                inside = f"{path}[...]" if path else str(key)
                yield inside, key
                yield from _leaves(item, inside)
        case list() | tuple() | set() | frozenset():
            for index, item in enumerate(value):
                yield from _leaves(item, f"{path}[{index}]")
        case str() | int() | float() | None:
            yield path, value
        case _:
            yield from _fields(value, path)


def _fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The same for a dataclass, Struct, attrs class or model."""
    try:
        inside = _builtins(value)
    except (TypeError, ValueError, NotImplementedError):
        return
    if isinstance(inside, dict):
        for name, item in inside.items():
            yield from _leaves(item, f"{path}.{name}")
    else:
        yield from _leaves(inside, path)


def _refusal(
    failure: Exception, arguments: Mapping[str, Any], *, whole: str = "arguments"
) -> InvalidArgument:
    """What is wrong and where. Raised without its cause, whose text can repeat a value."""
    if isinstance(failure, msgspec.ValidationError):
        return _bad_leaf(arguments) or _invalid(failure, whole)
    if isinstance(failure, UnicodeEncodeError) and (fault := _bad_leaf(arguments)):
        return fault
    for name, value in arguments.items():
        if not _is_encodable(value):
            return InvalidArgument(f"`{name}` holds a value that JSON cannot hold", field=name)
    verb = "are" if whole == "arguments" else "is"
    return InvalidArgument(f"the {whole} {verb} not valid JSON", field=whole)


def _invalid(failure: msgspec.ValidationError, whole: str) -> InvalidArgument:
    match = _MESSAGE.fullmatch(str(failure))
    what, path = (match["what"], match["path"]) if match else ("Expected another value", None)
    named = _FIELD.match(what)
    if named:
        path = f"{path}.{named[1]}" if path else named[1]
        kind = "an argument of this job" if whole == "arguments" else f"a field of the {whole}"
        what = "is missing" if "missing" in named[0] else f"is not {kind}"
    else:
        what = _QUOTES_VALUE.sub(r"\1", what)
        what = what[:1].lower() + what[1:]
    field = path or whole
    return InvalidArgument(f"`{field}`{' ' if named else ': '}{what}", field=field)


def _is_encodable(value: Any) -> bool:
    try:
        _encoder.encode(value)
    except _FAILURES:
        return False
    return True
