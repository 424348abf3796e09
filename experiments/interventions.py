"""Interventions as the user writes them: `do(PKA=1.0, PKC=-0.5)`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from bci.dataset import Scaler
from bci.errors import InvalidInput

_REACH = 1e6  # standard deviations; at 1e154 squares overflow
_EXAMPLE = "do(NAME=VALUE) or do(NAME=VALUE, NAME=VALUE)"
# A name may hold commas and equals signs: it ends where a value and then a comma or the end follow.
_ASSIGNMENT = re.compile(r"\s*(.+?)\s*=\s*([^=,]+?)\s*(?:,|$)")


def parse_do(key: str, text: str, names: Sequence[str], scaler: Scaler | None = None) -> dict[str, float]:
    """The variables that `do(...)` sets and their values.

    Args:
        key: what the text is given for, for messages.
        text: `do(NAME=VALUE, ...)`; blanks do not matter.
        names: the variables there are.
        scaler: of the data, for values in their units; standardised values if left out.

    Raises:
        InvalidInput: of another form, an unknown or repeated name, or a value that is not a finite number or is more
            than a million standard deviations from the mean.
    """
    outer = re.fullmatch(r"\s*do\s*\((.*)\)\s*", text, re.DOTALL)
    if not outer or not outer[1].strip():
        raise InvalidInput(f"{key}: expected {_EXAMPLE}, got {text!r}; quote it in the shell")
    values: dict[str, float] = {}
    rest = outer[1]
    while rest.strip():
        found = _ASSIGNMENT.match(rest)
        if not found:
            raise InvalidInput(f"{key}: expected {_EXAMPLE}, got {text!r}; quote it in the shell")
        name, value = check_name(key, found[1], names), _number(key, found[2])
        if name in values:
            raise InvalidInput(f"{key}: expected every variable once, got {name!r} twice; drop one")
        _check_reach(key, name, value, names, scaler)
        values[name] = value
        rest = rest[found.end() :]
    return values


def check_name(key: str, name: str, names: Sequence[str]) -> str:
    """`name` itself; InvalidInput unless it is one of `names`."""
    if name not in names:
        raise InvalidInput(f"{key}: expected one of {', '.join(names)}, got {name!r}")
    return name


def written_do(do: Mapping[str, float]) -> str:
    """`do(PKA=1, PKC=-0.5)`."""
    return f"do({', '.join(f'{name}={value:g}' for name, value in do.items())})"


def _check_reach(key: str, name: str, value: float, names: Sequence[str], scaler: Scaler | None) -> None:
    place = names.index(name)
    mean, std = (float(scaler.mean[place]), float(scaler.std[place])) if scaler else (0.0, 1.0)
    if abs(value - mean) / std > _REACH:
        raise InvalidInput(
            f"{key}: expected a value within {_REACH:,.0f} standard deviations of the mean of the training data, "
            f"got {name}={value:g}; choose one nearer"
        )


def _number(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{key}: expected a finite number as value, got {text!r}")
    return value
