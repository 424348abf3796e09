from __future__ import annotations

import io
import os
import sys
import time
from contextlib import contextmanager

import pytest
from screen import screen

from experiments.live_lines import LiveLines, is_terminal


class Terminal(io.StringIO):
    """Both streams of a terminal; what is on its screen can be read."""

    def isatty(self):
        return True

    @property
    def screen(self):
        return screen(self.getvalue().replace("\n", "\r\n"))


@pytest.fixture
def terminal():
    return Terminal()


@contextmanager
def drawn(terminal, *lines):
    """Draw lines, which may be changed, below what goes to stdout and stderr."""
    changed = list(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(sys, "stderr", terminal)
        live = LiveLines(lambda: list(changed))
        live.changed = changed
        live.start()
        yield live
        live.stop()


def test_output_stays_above_the_lines(terminal):
    with drawn(terminal, "1/9 done", "fit") as live:
        sys.stdout.write("first\n")
        sys.stderr.write("second, longer than the lines\n")
        assert terminal.screen == ["first", "second, longer than the lines", "1/9 done", "fit"]
        live.changed[:] = ["2/9"]
        sys.stdout.write("third\n")
        assert terminal.screen == ["first", "second, longer than the lines", "third", "2/9"]


def test_a_line_in_parts_is_not_cut(terminal):
    with drawn(terminal, "1/9 done", "fit"):
        sys.stdout.write("a ")
        sys.stderr.write("b ")
        assert terminal.screen == ["a b "]
        sys.stdout.writelines(["c", "\n"])
        assert terminal.screen == ["a b c", "1/9 done", "fit"]


def test_lines_that_change_are_drawn_again(terminal):
    with drawn(terminal, "1/9 done", "fit") as live:
        live.changed[0] = "5/9 done"
        while "5/9 done" not in terminal.screen:
            time.sleep(0.01)
        assert terminal.screen == ["5/9 done", "fit"]


def test_at_the_end_the_lines_are_gone_and_the_streams_as_before(terminal):
    with drawn(terminal, "1/9 done", "fit") as live:
        above = sys.stdout
        sys.stdout.write("first\n")
        live.stop()
        assert terminal.screen == ["first", ""]
        assert sys.stdout is sys.stderr is terminal
        above.write("of a logger that kept the stream\n")
        assert terminal.screen == ["first", "of a logger that kept the stream", ""]


def test_another_process_on_the_terminal_writes_above_them_too(terminal):
    with drawn(terminal, "1/9 done", "fit"):
        sys.stdout.write("first\n")
        with drawn(terminal):
            sys.stdout.write("of another process\n")
            assert terminal.screen == ["first", "of another process", ""]


def test_lines_fit_the_terminal_and_hold_no_control_characters(terminal):
    with drawn(terminal, "x" * 200, "tab\there\x1b[2J"):
        sys.stdout.write("first\n")
        assert terminal.screen == ["first", "x" * 79, "tabhere[2J"]


@pytest.mark.parametrize(
    ("term", "stream", "answer"), [("xterm", "file", False), ("dumb", "pty", False), ("xterm", "pty", True)]
)
def test_only_a_terminal_that_can_move_its_cursor_gets_lines(monkeypatch, term, stream, answer):
    monkeypatch.setenv("TERM", term)
    ends = os.openpty() if stream == "pty" else os.pipe()
    with os.fdopen(ends[0], "rb"), os.fdopen(ends[1], "w") as written:
        assert is_terminal(written) == answer
