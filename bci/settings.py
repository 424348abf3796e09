"""Checks of settings that come from a config, with errors that name the key."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from bci.errors import InvalidInput

Choice = TypeVar("Choice")
Settings = TypeVar("Settings")


def check_count(key: str, value: object, minimum: int) -> None:
    """Raise InvalidInput unless `value` is a whole number of at least `minimum`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise InvalidInput(f"{key}: expected a whole number of at least {minimum}, got {value!r}")


def check_number(key: str, value: object, *, positive: bool = False, minimum: float | None = None) -> None:
    """Raise InvalidInput unless `value` is a finite number, where asked for also positive or at least `minimum`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if not is_number or (positive and float(value) <= 0):  # type: ignore[arg-type]
        raise InvalidInput(f"{key}: expected a {'positive' if positive else 'finite'} number, got {value!r}")
    if minimum is not None and float(value) < minimum:  # type: ignore[arg-type]
        raise InvalidInput(f"{key}: expected at least {minimum:g}, got {value!r}")


def check_choice(key: str, value: object, choices: Sequence[Choice]) -> Choice:
    """The one of `choices` that `value` equals; InvalidInput if there is none."""
    for choice in choices:
        if value == choice:
            return choice
    raise InvalidInput(f"{key}: expected one of {', '.join(map(str, choices))}, got {value!r}")


def check_device(key: str, value: str) -> None:
    """Raise InvalidInput unless `value` names a torch device that computes in float64 on this machine."""
    import torch  # only here, as it takes seconds and checks of other settings need not spend them

    try:
        torch.ones(1, dtype=torch.float64, device=value).item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise InvalidInput(f"{key}: expected a torch device that this machine has, got {value!r}; use cpu") from error


def settings_from(kind: type[Settings], key: str, values: Mapping[str, Any]) -> Settings:
    """The dataclass `kind` made from the mapping under `key`.

    Raises:
        InvalidInput: not a mapping, a key that `kind` does not have, or none where it has no default.
    """
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    known = {field.name for field in fields}
    required = {field.name for field in fields if field.default is dataclasses.MISSING}
    if not (isinstance(values, Mapping) and required <= set(values) <= known):
        names = ", ".join(field.name for field in fields)
        raise InvalidInput(f"{key}: expected a mapping with the keys {names}, got {values!r}")
    return kind(**values)
