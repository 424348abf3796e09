"""Command lines of the form `key=value`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bci.errors import InvalidInput
from experiments.outcome import INVALID, OK, complain, one_line, say


def key_values(arguments: Sequence[str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The value of every key, as text, by default that of `defaults`.

    Raises:
        InvalidInput: an argument that is not key=value, an unknown key, or one that comes twice.
    """
    given: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in defaults:
            raise InvalidInput(
                f"command line: expected {', '.join(f'{name}=...' for name in defaults)}, got {argument!r}"
            )
        if key in given:
            raise InvalidInput(f"{key}: expected one value, got it twice; drop one")
        given[key] = value
    return {**defaults, **given}


def whole_number(key: str, text: str, minimum: int) -> int:
    """Raises InvalidInput unless the text is a whole number of at least `minimum`."""
    if not text.isdecimal() or int(text) < minimum:
        raise InvalidInput(f"{key}: expected a whole number of at least {minimum}, got {text!r}")
    return int(text)


def yes_or_no(key: str, text: str) -> bool:
    """Raises InvalidInput unless the text is true or false."""
    if text not in ("true", "false"):
        raise InvalidInput(f"{key}: expected true or false, got {text!r}")
    return text == "true"


def answered(arguments: Sequence[str], usage: str, answer: Callable[[Sequence[str]], str]) -> int:
    """Say what a command answers to its arguments, or how it is used where they ask for help; returns the exit code."""
    if {"-h", "--help"} & set(arguments):
        say(usage)
        return OK
    try:
        say(answer(arguments))
    except InvalidInput as error:
        complain(one_line(error))
        return INVALID
    return OK
