"""The names of Work: identifiers, versions and codes, checked before they travel."""

import re

from onecommit.errors import InvalidWork

_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_VERSION = re.compile(r"[A-Za-z0-9._:-]{1,100}")
_CODE = re.compile(r"[A-Za-z0-9._:-]{1,120}")
_ALPHABET = "letters, digits and ._:- of ASCII"


def checked_identifier(value: object, *, field: str) -> str:
    """The identifier of a scope, command, contract and the like, if it is one."""
    return _checked(_IDENTIFIER, value, field=field, longest=200)


def checked_version(value: object, *, field: str) -> str:
    """The version of a contract, if it is one."""
    return _checked(_VERSION, value, field=field, longest=100)


def checked_code(value: object, *, field: str) -> str:
    """A code of the application, if it is one; those that begin with ASDUR are the protocol's."""
    code = _checked(_CODE, value, field=field, longest=120)
    if code[:5].upper() == "ASDUR":
        raise InvalidWork(
            f"`{field}` begins with ASDUR, which is reserved",
            field=field,
            remedy="Name it after your application: app.mail.quota.",
        )
    return code


def _checked(pattern: re.Pattern[str], value: object, *, field: str, longest: int) -> str:
    if isinstance(value, str) and pattern.fullmatch(value):
        return value
    raise InvalidWork(f"`{field}` is not 1 to {longest} of {_ALPHABET}", field=field)
