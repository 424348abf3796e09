"""Settings that only some of the choices of another setting read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Literal

from bci.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Implementation = Literal["castle", "causal_learn"]
IMPORT_NAMES: dict[Implementation, str] = {"castle": "castle", "causal_learn": "causallearn"}


def check_unread(settings: DataclassInstance, keys: Sequence[str], reader: str) -> None:
    """Raise InvalidInput if one of `keys` has been changed from its default, which would change nothing.

    Args:
        reader: the choice that would read them, as KEY=VALUE.
    """
    defaults = {field.name: field.default for field in fields(settings)}
    for key in keys:
        value = getattr(settings, key)
        if value != defaults[key]:
            raise InvalidInput(
                f"{key}: expected {defaults[key]!r}, since only {reader} reads it, got {value!r}; "
                f"set {reader} or leave {key} out"
            )
