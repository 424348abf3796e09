"""Turn a group of the config into the object it describes, with its keys and types checked first."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from bci.errors import InvalidInput
from experiments.outcome import one_line

Built = TypeVar("Built")


def build(group: str, settings: Mapping[str, Any], kind: type[Built]) -> Built:
    """Call the `_target_` of a config group with the group's other keys.

    Args:
        group: name of the group, for messages.
        settings: plain values; `_target_` is the dotted path of a class or function.
        kind: the class of what has to come out.

    Raises:
        InvalidInput: a key that the target does not take or needs, a value of another type than it declares, or
            whatever the target itself refuses.
    """
    check_settings(group, settings, _target(group, settings.get("_target_")))
    with naming_keys(group, settings):
        try:
            built = instantiate(dict(settings), _convert_="all")
        except InstantiationException as error:
            if error.__cause__ is not None:
                raise error.__cause__ from None
            raise
    if not isinstance(built, kind):
        raise InvalidInput(f"{group}._target_: expected a {kind.__name__}, got a {type(built).__name__}; correct it")
    return built


def _target(group: str, name: object) -> Callable[..., Any]:
    """What a dotted name stands for; Hydra would write to its log before it raises."""
    module, _, attribute = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    try:
        target = getattr(importlib.import_module(module), attribute)
        inspect.signature(target)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{group}._target_: expected the dotted name of a class or function, got {name!r} ({one_line(error)}); "
            f"leave it as in conf/{group}"
        ) from error
    return target  # type: ignore[no-any-return]


@contextmanager
def naming_keys(group: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """Put the group before the key where an InvalidInput begins with one: `seed: ...` becomes `data.seed: ...`.

    The library knows its settings as arguments, the user knows them as keys of the config.
    """
    try:
        yield
    except InvalidInput as error:
        key = re.match(r"(\w+)((\.\w+)*): ", str(error))
        if key and key[1] in settings and (not key[2] or isinstance(settings[key[1]], Mapping)):
            raise InvalidInput(f"{group}.{error}") from error
        raise


def check_settings(
    group: str, settings: Mapping[str, Any], target: Callable[..., Any], given: Sequence[str] = ()
) -> None:
    """Compare settings with the annotated signature of `target`; `given` are the arguments that come from elsewhere.

    Raises:
        InvalidInput: as `build`.
    """
    parameters = inspect.signature(target).parameters
    by_init = inspect.isclass(target) and not dataclasses.is_dataclass(target)  # fields: each in its class's module
    hints = get_type_hints(target.__init__ if by_init else target)
    values = {key: value for key, value in settings.items() if not key.startswith("_")}
    accepted = [name for name, parameter in parameters.items() if parameter.kind in _BY_NAME and name not in given]
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    for key, value in values.items():
        if key not in accepted and not open_ended:
            raise InvalidInput(f"{group}.{key}: unknown key; expected one of {', '.join(accepted)}")
        if key in accepted and not _conforms(value, hints.get(key, Any)):
            wanted = f"[{value}]" if _conforms([value], hints[key]) else "..."  # one item is a list too
            raise InvalidInput(
                f"{group}.{key}: expected {_describe(hints[key])}, got {value!r}; set {group}.{key}={wanted}"
            )
    for name in accepted:
        if name not in values and parameters[name].default is inspect.Parameter.empty:
            raise InvalidInput(f"{group}.{name}: expected a value, got none; add it to the config")


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "null",
    Path: "a path",
    Mapping: "a mapping",
}


def _conforms(value: object, hint: object) -> bool:
    """Whether a value from YAML fits a type hint; a hint that YAML cannot express is left to the target."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_conforms(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    kind = origin or hint
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if inspect.isclass(kind) and issubclass(kind, os.PathLike):
        return isinstance(value, str)
    if kind in (bool, str, type(None)):
        return isinstance(value, kind)
    if _is_list(kind):
        items = [argument for argument in arguments if argument is not Ellipsis]
        if not isinstance(value, list | tuple):
            return False
        if kind is tuple and Ellipsis not in arguments and items:
            return len(value) == len(items) and all(map(_conforms, value, items))
        return not items or all(_conforms(item, items[0]) for item in value)
    if inspect.isclass(kind) and issubclass(kind, Mapping):
        return isinstance(value, Mapping)
    return True


def _is_list(kind: object) -> bool:
    return inspect.isclass(kind) and issubclass(kind, Sequence) and not issubclass(kind, str | bytes)


def _describe(hint: object) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(argument) for argument in arguments)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if _is_list(origin or hint):
        items = [_describe(argument) for argument in arguments if argument is not Ellipsis]
        return f"a list of {items[0]}" if items else "a list"
    kind = origin or hint
    return _NAMES[kind] if isinstance(kind, type) and kind in _NAMES else str(getattr(hint, "__name__", hint))
