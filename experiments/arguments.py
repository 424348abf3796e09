"""Command lines of the form `key=value`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bci.errors import InvalidInput
from experiments.outcome import INVALID, OK, complain, drop_unwritten, one_line


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


def whole_number_if_given(key: str, text: str, minimum: int) -> int | None:
    """As `whole_number`; None for an empty text, the default of a key that may be left out."""
    return whole_number(key, text, minimum) if text else None


def path(text: str) -> Path:
    """A file or folder; a shell leaves `~`, the home folder, as it is after `key=`."""
    return Path(os.path.expanduser(text))


def yes_or_no(key: str, text: str) -> bool:
    """Raises InvalidInput unless the text is true or false."""
    if text not in ("true", "false"):
        raise InvalidInput(f"{key}: expected true or false, got {text!r}")
    return text == "true"


def answered(arguments: Sequence[str], usage: str, answer: Callable[[Sequence[str]], str]) -> int:
    """Say what a command answers to its arguments, or how it is used where they ask for help; returns the exit code."""
    asks_for_help = bool({"-h", "--help"} & set(arguments))

    def work() -> int:
        tell(usage if asks_for_help else answer(arguments))
        return OK

    return exit_code(work)


def tell(text: str) -> None:
    """Write the answer of a command to stdout, which it must not lose.

    Raises:
        BrokenPipeError: nobody reads on.
        InvalidInput: it cannot be written.
    """
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InvalidInput(f"stdout: expected a place that can be written to, got: {one_line(error)}") from error


def exit_code(work: Callable[[], int]) -> int:
    """What the work of a command returns; bad input and an interrupt end it with one line on stderr.

    It ends without a word where nobody reads on, as in `python -m experiments.store history | head -1`.
    """
    try:
        return work()
    except InvalidInput as error:
        complain(one_line(error))
        return INVALID
    except KeyboardInterrupt:
        complain("interrupted")
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    finally:
        drop_unwritten()
