from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from stand_ins import RandomDag

from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.method import Method
from experiments.build import build, check_settings

TARGET = "stand_ins.RandomDag"


def from_file(path: str | Path, weights: Mapping[str, float] | float | None = None) -> None:
    """Takes a file."""


def two_numbers(
    pair: tuple[float, float], required: int, weights: list[float] | None = None, anything: object = None
) -> None:
    """Takes a pair, a number, and what may be left out."""


def test_the_target_gets_its_settings():
    method = build("method", {"_target_": TARGET, "max_parents": 3, "names": ["a", "b"], "scale": 2}, Method)
    assert isinstance(method, RandomDag)
    assert (method.max_parents, method.names, method.scale) == (3, ["a", "b"], 2)
    assert type(method.names) is list


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"depth": 1}, "method.depth: unknown key; expected one of max_parents, mode, scale, names"),
        ({"max_parents": "abc"}, "method.max_parents: expected a whole number, got 'abc'"),
        ({"max_parents": 2.5}, "method.max_parents: expected a whole number, got 2.5"),
        ({"max_parents": True}, "method.max_parents: expected a whole number, got True"),
        ({"max_parents": None}, "method.max_parents: expected a whole number, got None"),
        ({"scale": "wide"}, "method.scale: expected a number, got 'wide'"),
        (
            {"mode": "nope"},
            "method.mode: expected one of fit, invalid, crash, memory, interrupt, killed, timeout, got 'nope'",
        ),
        ({"names": "ab"}, "method.names: expected a list of a text or null, got 'ab'; set method.names=[ab]"),
        ({"names": [1]}, "method.names: expected a list of a text or null, got [1]; set method.names=..."),
        ({"max_parents": -1}, "method.max_parents: expected at least 0, got -1"),
    ],
)
def test_a_setting_the_target_cannot_take_is_named(settings, expected):
    with pytest.raises(InvalidInput) as error:
        build("method", {"_target_": TARGET, **settings}, Method)
    assert str(error.value).startswith(expected)


@pytest.mark.parametrize("target", ["foo.bar", "os.nothing", "os", "", None, 3, "stand_ins.Path.nothing", "os.sep"])
def test_a_target_that_is_no_class_or_function_is_named(target, capfd, caplog):
    with pytest.raises(
        InvalidInput, match=r"^data\._target_: expected the dotted name of a class or .* as in conf/data$"
    ):
        build("data", {"_target_": target}, Dataset)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_target_of_another_kind_is_named():
    with pytest.raises(InvalidInput, match=r"data\._target_: expected a Dataset, got a RandomDag"):
        build("data", {"_target_": TARGET}, Dataset)


@pytest.mark.parametrize(
    "settings",
    [{"pair": [1, 2.5], "required": 1}, {"pair": [1, 2], "required": 0, "weights": [1, 2.5], "anything": {"a": 1}}],
)
def test_values_that_fit_the_annotations_pass(settings):
    check_settings("group", settings, two_numbers)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"pair": [1], "required": 1}, "group.pair: expected a list"),
        ({"pair": [1, "x"], "required": 1}, "group.pair: expected a list"),
        ({"pair": [1, 2]}, "group.required: expected a value, got none; add it to the config"),
        ({"pair": [1, 2], "required": 1, "weights": ["x"]}, "group.weights: expected a list"),
    ],
)
def test_values_that_do_not_fit_are_named(settings, expected):
    with pytest.raises(InvalidInput, match=expected):
        check_settings("group", settings, two_numbers)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"path": None}, "group.path: expected a text or a path, got None; set group.path=..."),
        ({"path": 3}, "group.path: expected a text or a path, got 3"),
        ({"path": "a", "weights": "b"}, "group.weights: expected a mapping or a number or null, got 'b'"),
    ],
)
def test_paths_and_mappings_are_told_in_words(settings, expected):
    with pytest.raises(InvalidInput) as error:
        check_settings("group", settings, from_file)
    assert str(error.value).startswith(expected)


def test_arguments_that_come_from_elsewhere_are_not_settings():
    check_settings("group", {"pair": [1, 2]}, two_numbers, given=("required",))
    with pytest.raises(InvalidInput, match=r"group\.required: unknown key"):
        check_settings("group", {"pair": [1, 2], "required": 1}, two_numbers, given=("required",))
