"""Settings of methods that two packages implement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from bci.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Implementation = Literal["castle", "causal_learn"]
IMPORT_NAMES: dict[Implementation, str] = {"castle": "castle", "causal_learn": "causallearn"}


def check_only_used(
    settings: DataclassInstance, implementation: Implementation, only: Mapping[Implementation, Sequence[str]]
) -> None:
    """Raise InvalidInput if a key that only another implementation reads has been changed from its default.

    Args:
        only: for an implementation, the keys that no other reads.
    """
    defaults: dict[str, Any] = {field.name: field.default for field in fields(settings)}
    for other, keys in only.items():
        for key in keys:
            value = getattr(settings, key)
            if other != implementation and value != defaults[key]:
                raise InvalidInput(
                    f"{key}: expected {defaults[key]!r}, since only implementation={other} reads it, got {value!r}; "
                    f"set implementation={other} or leave {key} out"
                )
