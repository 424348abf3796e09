"""Errors about settings name the key, what was expected and what came."""

from dataclasses import dataclass

import numpy as np
import pytest

from bci.errors import InvalidInput
from bci.settings import check_choice, check_count, check_number, settings_from


@dataclass(frozen=True)
class Pair:
    left: int = 1
    right: int = 2


@dataclass(frozen=True)
class Single:
    only: int


def test_good_settings_pass():
    check_count("k", np.int64(3), 3)
    check_number("k", -1)
    check_number("k", 1e-9, positive=True)
    assert check_choice("k", "b", ("a", "b")) == "b"
    assert settings_from(Pair, "k", {"right": 5}) == Pair(1, 5)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_count("k", 2, 3), "k: expected a whole number of at least 3, got 2"),
        (lambda: check_count("k", 3.0, 3), "k: expected a whole number of at least 3, got 3.0"),
        (lambda: check_count("k", True, 0), "k: expected a whole number of at least 0, got True"),
        (lambda: check_count("k", "5", 0), "k: expected a whole number of at least 0, got '5'"),
        (lambda: check_number("k", "x"), "k: expected a finite number, got 'x'"),
        (lambda: check_number("k", float("nan")), "k: expected a finite number, got nan"),
        (lambda: check_number("k", 0, positive=True), "k: expected a positive number, got 0"),
        (lambda: check_choice("k", "c", ("a", "b")), "k: expected one of a, b, got 'c'"),
        (lambda: settings_from(Pair, "k", {"up": 1}), "k: expected a mapping with the keys left, right, got {'up': 1}"),
        (lambda: settings_from(Single, "k", {}), "k: expected a mapping with the keys only, got {}"),
        (lambda: settings_from(Pair, "k", 3), "k: expected a mapping with the keys left, right, got 3"),
    ],
)
def test_bad_settings_are_refused_by_key(check, message):
    with pytest.raises(InvalidInput) as caught:
        check()
    assert str(caught.value) == message
