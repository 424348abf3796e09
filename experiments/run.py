"""Run jobs from the command line: `python -m experiments.run data=sachs method=arco_gp`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from experiments.outcome import complain, drop_unwritten

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Run the command line; an interrupt (SIGINT) or a termination (SIGTERM) ends it with one line on stderr."""
    with _on_signals(_leave):
        from experiments.command import command  # takes seconds, in which nothing begins that needs an orderly end
    try:
        with _on_signals(_interrupt):
            command()
    except KeyboardInterrupt as interrupt:
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        complain(_line(number))
        sys.exit(_code(number))
    finally:
        drop_unwritten()


@contextmanager
def _on_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let `handler` answer signals, those that the caller had ignored (as nohup does) left aside."""
    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    answered = [number for number, action in previous.items() if action != signal.SIG_IGN]
    for number in answered:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in answered:
            signal.signal(number, previous[number])


def _leave(number: int, _: FrameType | None) -> None:
    """End at once, as an exception from the middle of an import may be swallowed or come out as another."""
    complain(_line(number))
    os._exit(_code(number))


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


def _line(number: int) -> str:
    what = "terminated" if number == signal.SIGTERM else "interrupted"
    return f"{what}; nothing of a job that had not ended was stored"


def _code(number: int) -> int:
    return 128 + number


if __name__ == "__main__":
    main()
