"""What every packaged method keeps before a package is reached."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from baselines.bayesdag import BayesDAG
from baselines.dag_gnn import DAGGNN
from baselines.dds import DDS
from baselines.dibs_gp import DibsGP
from baselines.gadget import GADGET
from baselines.ges import GES
from baselines.golem import GOLEM
from baselines.grasp import GRaSP
from baselines.pc import PC
from baselines.resit import RESIT
from bci.errors import InvalidInput

METHODS = [BayesDAG, DAGGNN, DDS, DibsGP, GADGET, GES, GOLEM, GRaSP, PC, RESIT]
PACKAGES = {"castle", "causallearn", "lingam", "sumu"}


@pytest.fixture
def no_process(monkeypatch):
    def start(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr("baselines.packaged.fit_in_process", start)


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize("method", METHODS)
def test_a_missing_package_is_one_line_that_names_the_extra(chain, rng, monkeypatch, method):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InvalidInput) as caught:
        method().fit(chain, rng)
    assert "pip install '.[baselines]'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, "constant", "duplicate"])
def test_values_that_a_package_might_swallow_do_not_reach_it(chain, rng, method, bad):
    values = chain.observations.copy()
    if bad == "constant":
        values[:, 1] = 3.0
    elif bad == "duplicate":
        values[:, 1] = -2 * values[:, 0]
    else:
        values[7, 1] = bad
    with pytest.raises(InvalidInput):
        method().fit(replace(chain, observations=values), rng)


@pytest.mark.parametrize("method", METHODS)
def test_a_time_limit_must_be_positive(method):
    assert method().timeout_seconds is None
    with pytest.raises(InvalidInput, match=r"^timeout_seconds: expected a positive number"):
        method(timeout_seconds=-1.0)


@pytest.mark.parametrize("method", METHODS)
def test_the_settings_handed_over_are_all_but_the_time_limit(method):
    assert {*method(timeout_seconds=5).settings, "timeout_seconds"} == {field.name for field in fields(method)}
    assert set(inspect.signature(inspect.getmodule(method).fit).parameters) == {"observations", "settings", "seed"}


def test_the_packages_are_not_imported_here():
    modules = ", ".join(f"baselines.{name}" for name in ("dag_gnn", "gadget", "ges", "golem", "grasp", "pc", "resit"))
    code = f"import sys, {modules}; sys.exit(len({PACKAGES} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
