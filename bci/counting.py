"""How far a long computation is: a bar on the terminal, or whatever the caller makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
Report = Callable[[str, int, int], None]

_report: ContextVar[Report | None] = ContextVar("report", default=None)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Within this context call `report(what, done, total)` before each item instead of drawing a bar."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def counted(items: Sequence[Item], what: str, unit: str) -> Iterator[Item]:
    """Go through `items` and tell how many are done; a bar is drawn only where stderr is a terminal."""
    report = _report.get()
    if report is None:
        yield from tqdm(items, desc=what, unit=unit, leave=False, disable=None)
        return
    for done, item in enumerate(items):
        report(what, done, len(items))
        yield item
