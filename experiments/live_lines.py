"""Lines that stay at the bottom of a terminal, with all other output above them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TextIO

_ERASE = "\r\x1b[J"  # from the cursor's line to the end of the screen
_EVERY = 0.2  # seconds between two looks at what there is to draw


def is_terminal(stream: TextIO) -> bool:
    """Whether lines can be drawn again there."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class LiveLines:
    """Draws lines on stderr, five times a second if they change, and keeps them below what this process writes.

    The cursor rests at the start of the first of them, so that whoever writes there has only to erase what is below:
    processes that share the terminal each have a `LiveLines`, all but one with nothing to draw.

    Args:
        lines: what to draw now; None draws nothing.
    """

    def __init__(self, lines: Callable[[], Sequence[str]] | None = None) -> None:
        self._lines = lines
        self._drawn: list[str] = []
        self._lock = threading.RLock()
        self._at_line_start = True
        self._stop = threading.Event()
        self._terminal = sys.stderr
        self._replaced: dict[str, tuple[TextIO, _Above]] = {}
        self._thread = threading.Thread(target=self._run, name="live lines", daemon=True)

    def start(self) -> None:
        """Draw from now on; stdout, if it is a terminal too, and stderr are replaced."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if is_terminal(stream):
                self._replaced[name] = (stream, _Above(stream, self))
                setattr(sys, name, self._replaced[name][1])
        if self._lines is not None:
            self._thread.start()

    def stop(self) -> None:
        """Erase the lines and give the streams back."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            self._erase()
            self._lines = None
        for name, (stream, above) in self._replaced.items():
            if getattr(sys, name) is above:
                setattr(sys, name, stream)
        self._replaced.clear()

    def write_above(self, stream: TextIO, text: str) -> int:
        """Write text to a stream of the terminal, and the lines again below it once it ends a line."""
        with self._lock:
            if self._replaced:
                self._erase()
            written = stream.write(text)
            stream.flush()
            if text:
                self._at_line_start = text.endswith("\n")
            self._draw()
        return written

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            with self._lock:
                if self._fitted() != self._drawn:
                    self._draw()

    def _erase(self) -> None:
        if self._at_line_start:
            self._put(_ERASE)
            self._drawn = []

    def _draw(self) -> None:
        if self._lines is not None and self._at_line_start and not self._stop.is_set():
            lines = self._fitted()
            up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
            self._put(_ERASE + "\n".join(lines) + "\r" + up)
            self._drawn = lines

    def _put(self, codes: str) -> None:
        with suppress(OSError):  # the terminal has gone
            self._terminal.write(codes)
            self._terminal.flush()

    def _fitted(self) -> list[str]:
        """The lines, none wider than the terminal, without control characters."""
        try:
            width = os.get_terminal_size(self._terminal.fileno()).columns or 80
        except OSError:
            width = 80
        lines = self._lines() if self._lines is not None else []
        return ["".join(filter(str.isprintable, line))[: width - 1] for line in lines]


class _Above:
    """A stream of the terminal that `LiveLines` shares with others."""

    def __init__(self, stream: TextIO, live: LiveLines) -> None:
        self._stream, self._live = stream, live

    def write(self, text: str) -> int:
        return self._live.write_above(self._stream, text)

    def writelines(self, lines: Sequence[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)
