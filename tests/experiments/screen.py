"""A terminal to test against: a pseudo-terminal, and what its screen shows after the bytes written to it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path


def run_on_terminal(command: Sequence[str], folder: Path, env: dict[str, str]) -> tuple[int, list[str]]:
    """Run a command with a terminal of 80 columns as its input and output; returns its exit code and what it wrote.

    The output comes in the pieces in which it was read, so that the screen at those moments can be looked at.
    """
    import fcntl
    import pty
    import struct
    import subprocess
    import termios

    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, cwd=folder, env={**env, "TERM": "xterm"})
    os.close(its)
    pieces = []
    while piece := _read(ours):
        pieces.append(piece)
    os.close(ours)
    return process.wait(timeout=60), [piece.decode() for piece in pieces]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def screen(text: str) -> list[str]:
    """The lines of a screen without end, after the control codes that are used here; others fail."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\d*[A-Za-z]|[\r\n]|[^\x1b\r\n]+|\x1b", text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        elif up := re.fullmatch(r"\x1b\[(\d+)A", part):
            row -= int(up[1])
        else:
            assert part.isprintable(), part
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return lines
