from __future__ import annotations

import numpy as np
import pytest

from bci.dataset import Scaler
from bci.errors import InvalidInput
from experiments.interventions import parse_do, written_do

NAMES = ("PKA", "Erk", "a, b=c", "x y")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("do(PKA=1.0)", {"PKA": 1.0}),
        (" do ( PKA = -1e-2 , Erk=+3 ) ", {"PKA": -0.01, "Erk": 3.0}),
        ("do(x y=2)", {"x y": 2.0}),
        ("do(PKA=1, a, b=c=2, Erk=0)", {"PKA": 1.0, "a, b=c": 2.0, "Erk": 0.0}),
    ],
)
def test_one_or_several_variables_are_set(text, values):
    assert parse_do("do", text, NAMES) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PKA=1", "do: expected do"),
        ("do()", "do: expected do"),
        ("do(PKA)", "do: expected do"),
        ("do(PKA=)", "do: expected do"),
        ("do(PKA=1", "do: expected do"),
        ("do(Raf=1)", "do: expected one of PKA, Erk, a, b=c, x y, got 'Raf'"),
        ("do(PKA=high)", "do: expected a finite number as value, got 'high'"),
        ("do(PKA=nan)", "do: expected a finite number as value, got 'nan'"),
        (
            "do(PKA=-1e7)",
            "do: expected a value within 1,000,000 standard deviations of the mean of the training data, got PKA=-1e",
        ),
        ("do(PKA=1, PKA=2)", "do: expected every variable once, got 'PKA' twice"),
    ],
)
def test_other_forms_are_refused_in_one_line(text, message):
    with pytest.raises(InvalidInput) as caught:
        parse_do("do", text, NAMES)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_values_in_the_units_of_the_data_are_measured_by_their_spread():
    scaler = Scaler(mean=np.array([1e9, 0.0, 0.0, 0.0]), std=np.array([1e3, 1e-300, 1.0, 1.0]))
    far = "do(PKA=2e9, Erk=1e-294)"
    assert parse_do("do", far, NAMES, scaler) == {"PKA": 2e9, "Erk": 1e-294}
    for text in ("do(PKA=-1e8)", "do(Erk=1)", "do(Erk=1e308)"):
        with pytest.raises(InvalidInput, match="expected a value within 1,000,000 standard deviations"):
            parse_do("do", text, NAMES, scaler)


def test_what_is_written_can_be_read():
    do = {"PKA": 1.0, "Erk": -0.25}
    assert written_do(do) == "do(PKA=1, Erk=-0.25)"
    assert parse_do("do", written_do(do), NAMES) == do
