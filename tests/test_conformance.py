"""What every method in conf/method/ keeps: a new one is tested by being listed there."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from bci.causal_posterior import CausalPosterior, GenerativePosterior
from bci.data.simulate import simulated_dataset
from bci.dataset import Dataset, Scaler
from bci.errors import InvalidInput
from bci.graphs import find_cycle
from bci.method import Method
from bci.posterior import Posterior
from bci.posterior_file import load_posterior, save_posterior
from experiments.build import build
from experiments.run import CONFIGS

NAMES = sorted(file.stem for file in CONFIGS.glob("method/*.yaml"))

# Methods without a random or order-dependent step: permuted columns give the same numbers, permuted.
EQUIVARIANT = {"exact_gp", "sort_regress"}

# Methods whose full length is for real data.
SHORT: dict[str, dict[str, object]] = {
    "beeps": {"burn_in": 100, "iterations": 200, "mc3_chains": 4},
    "dag_gnn": {"epochs": 20, "k_max_iter": 5},
    "gadget": {"burn_in": 100, "iterations": 200, "mc3_chains": 4},
    "golem": {"num_iter": 600, "learning_rate": 0.01},
}

# Methods that leave out edges one after the other in the order of the columns.
TESTS_IN_COLUMN_ORDER = {"resit", "resit_gp"}

# Graphs that a penalty or tests keep from cycles more often than not.
MAY_HAVE_CYCLES = {"dag_gnn", "pc"}


class Fitted(NamedTuple):
    """A method, the data it was fitted to with seed 0, and what came of it."""

    method: Method
    dataset: Dataset
    posterior: Posterior


def method_named(name: str, **changes: object) -> Method:
    """The method of a config with its defaults, or in a short version, some keys changed."""
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("config", overrides=[f"method={name}"])
    return build(
        "method", {**OmegaConf.to_container(config.method, resolve=True), **SHORT.get(name, {}), **changes}, Method
    )


def random_graph_data(seed: int = 1, num_samples: int = 100) -> Dataset:
    return simulated_dataset(
        graph_model="er", num_nodes=5, expected_degree=1.5, mechanism="gp", num_samples=num_samples, seed=seed
    )


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def answers(posterior: Posterior) -> list[np.ndarray]:
    """Everything a posterior of any method can be asked, with fixed seeds."""
    return [posterior.edge_probabilities, *posterior.sample_graphs(30, rng(1))]


def assert_same(left: list[np.ndarray], right: list[np.ndarray]) -> None:
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module", params=NAMES)
def fitted(request: pytest.FixtureRequest) -> Fitted:
    method, dataset = method_named(request.param), random_graph_data()
    return Fitted(method, dataset, method.fit(dataset, rng()))


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_methods_are_listed():
    assert {"arco_gp", "exact_gp"} <= set(NAMES)
    assert set(NAMES) >= EQUIVARIANT


def test_edge_probabilities_are_probabilities(fitted):
    probabilities = fitted.posterior.edge_probabilities
    assert probabilities.shape == (5, 5)
    assert probabilities.dtype == np.float64
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert (np.diag(probabilities) == 0).all()


def test_the_graph_kind_is_the_declared_one(fitted):
    assert fitted.posterior.graph_kind == fitted.method.graph_kind
    assert fitted.posterior.graph_kind in ("dag", "cpdag")


@pytest.mark.parametrize("n", [1, 7, 40])
def test_sampled_graphs_are_weighted_graphs_of_the_declared_kind(fitted, n, request):
    graphs, weights = fitted.posterior.sample_graphs(n, rng())
    assert graphs.shape == (len(weights), 5, 5)
    assert graphs.dtype == bool
    assert not graphs.diagonal(axis1=1, axis2=2).any()
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    for graph in graphs:
        directed = graph & ~graph.T if fitted.posterior.graph_kind == "cpdag" else graph
        if request.node.callspec.params["fitted"] not in MAY_HAVE_CYCLES:
            assert find_cycle(directed) == []


def test_sampled_graphs_have_the_edges_that_are_probable(fitted):
    graphs, weights = fitted.posterior.sample_graphs(2000, rng())
    frequencies = np.einsum("n,nij->ij", weights, graphs)
    np.testing.assert_allclose(frequencies, fitted.posterior.edge_probabilities, atol=0.1)


def test_diagnostics_are_numbers_or_curves(fitted):
    for value in fitted.posterior.diagnostics.values():
        for number in value if isinstance(value, list) else [value]:
            assert isinstance(number, Real)


def nonlinear_pair() -> Dataset:
    """X0 -> X1; no additive noise model fits in the other direction."""
    generator = rng(3)
    cause = generator.normal(size=300)
    effect = np.sin(2 * cause) + 0.3 * cause**2 + 0.2 * generator.normal(size=300)
    return Dataset.from_raw(np.column_stack([cause, effect]), "ab", graph=np.eye(2, k=1, dtype=bool))


def linear_collider() -> Dataset:
    """X0 -> X2 <- X1; the independence of X0 and X1 gives the directions away."""
    generator = rng(1)
    causes, noise = generator.normal(size=(2, 500)), generator.normal(size=500)
    graph = np.zeros((3, 3), dtype=bool)
    graph[:2, 2] = True
    return Dataset.from_raw(np.column_stack([*causes, causes.sum(axis=0) + 0.5 * noise]), "abc", graph=graph)


def linear_chain() -> Dataset:
    """X0 -> X1 -> X2 with equal noise variances, on its own scale: that gives the directions away."""
    raw = np.cumsum(rng(3).normal(size=(500, 3)), axis=1)
    raw -= raw.mean(axis=0)
    mask, identity = np.zeros(raw.shape, dtype=bool), Scaler(np.zeros(3), np.ones(3))
    return Dataset(raw, ("a", "b", "c"), mask, identity, np.eye(3, k=1, dtype=bool))


# Data on which a method can tell causes from effects, and settings with which it does; `nonlinear_pair` if not listed.
CAN_ORIENT: dict[str, tuple[Callable[[], Dataset], dict[str, object]] | None] = {
    "arco_gp": (nonlinear_pair, {"max_parents": 1}),
    "beeps": (linear_collider, {}),
    "exact_gp": (nonlinear_pair, {"max_parents": 1}),
    "dag_gnn": (linear_chain, {}),
    "empty": None,
    "gadget": (linear_collider, {}),
    "ges": (linear_collider, {}),
    "golem": (linear_chain, {}),
    "grasp": (linear_collider, {}),
    "pc": (linear_collider, {}),
    "random": None,
    "sort_regress": (linear_chain, {"criterion": "variance"}),
}


@pytest.mark.parametrize("reverse", [False, True])
def test_causes_are_told_from_effects(name, reverse):
    data = CAN_ORIENT.get(name, (nonlinear_pair, {}))
    if data is None:
        pytest.skip("does not look at the data")
    make, settings = data
    dataset = make()
    if reverse:
        dataset = reordered(dataset, np.arange(dataset.num_nodes)[::-1])
    probabilities = method_named(name, **settings).fit(dataset, rng()).edge_probabilities
    assert probabilities[dataset.graph].min() > 0.9
    assert probabilities[dataset.graph.T].max() < 0.1


def test_the_order_of_the_columns_does_not_matter_to_the_quality(fitted, request):
    order = np.array([3, 0, 4, 1, 2])
    permuted = reordered(fitted.dataset, order)
    errors = [
        np.abs(posterior.edge_probabilities - graph).sum()
        for posterior, graph in (
            (fitted.posterior, fitted.dataset.graph),
            (fitted.method.fit(permuted, rng()), permuted.graph),
        )
    ]
    one_reversal = 2.0
    tolerance = one_reversal if request.node.callspec.params["fitted"] in TESTS_IN_COLUMN_ORDER else 1.5
    assert abs(errors[0] - errors[1]) <= tolerance


@pytest.mark.parametrize("name", sorted(EQUIVARIANT))
def test_permuted_columns_give_the_same_numbers_permuted(name):
    order = np.array([3, 0, 4, 1, 2])
    dataset = random_graph_data(num_samples=25)
    probabilities, permuted = (
        method_named(name).fit(data, rng()).edge_probabilities for data in (dataset, reordered(dataset, order))
    )
    is_in_doubt = ((probabilities > 0.1) & (probabilities < 0.9)).sum() >= 3
    assert is_in_doubt or np.isin(probabilities, (0, 1)).all()  # a point estimate never is
    assert probabilities.any()
    np.testing.assert_allclose(permuted, probabilities[np.ix_(order, order)], rtol=0, atol=1e-6)


def reordered(dataset: Dataset, order: np.ndarray) -> Dataset:
    return replace(
        dataset,
        observations=dataset.observations[:, order],
        names=tuple(dataset.names[column] for column in order),
        intervened=dataset.intervened[:, order],
        scaler=Scaler(dataset.scaler.mean[order], dataset.scaler.std[order]),
        graph=dataset.graph[np.ix_(order, order)],
        scm=None,
        draw_interventional_test=None,
    )


def test_the_same_seed_gives_the_same_answers(fitted):
    assert_same(answers(fitted.method.fit(fitted.dataset, rng())), answers(fitted.posterior))


def test_fits_of_one_method_are_independent(fitted):
    before = answers(fitted.posterior)
    fitted.method.fit(random_graph_data(seed=2), rng(5))
    assert_same(answers(fitted.posterior), before)
    assert_same(answers(fitted.method.fit(fitted.dataset, rng())), before)


def test_the_data_are_left_as_they_are(name):
    dataset = random_graph_data()
    kept = dataset.observations.copy(), dataset.intervened.copy(), dataset.graph.copy(), dataset.names
    method_named(name).fit(dataset, rng()).sample_graphs(5, rng())
    assert_same([dataset.observations, dataset.intervened, dataset.graph], list(kept[:3]))
    assert dataset.names == kept[3]


def queries(posterior: CausalPosterior) -> list[np.ndarray]:
    """Everything a posterior that answers queries can be asked, with fixed seeds."""
    found = [
        posterior.interventional_mean({}),
        posterior.interventional_mean({"X1": 0.5, 3: -1.0}, original_scale=True),
        np.array(posterior.average_causal_effect("X2", {"X1": 0.5}, {"X1": 0.0})[:2]),
    ]
    if isinstance(posterior, GenerativePosterior):
        found += posterior.sample_interventional({"X1": 0.5}, 40, rng(2))
    return found


def test_methods_that_answer_queries_say_so(fitted):
    assert isinstance(fitted.posterior, CausalPosterior) == fitted.method.answers_queries


@pytest.fixture
def asked(fitted: Fitted) -> Fitted:
    if not fitted.method.answers_queries:
        pytest.skip("answers no queries")
    return fitted


def test_variables_have_the_values_they_are_set_to(asked):
    dataset, posterior = asked.dataset, asked.posterior
    do = {dataset.names[0]: 0.3, dataset.names[4]: -1.2}
    np.testing.assert_allclose(posterior.interventional_mean(do)[[0, 4]], [0.3, -1.2], rtol=0, atol=1e-12)
    raw = posterior.interventional_mean(do, original_scale=True)
    np.testing.assert_allclose(raw[[0, 4]], [0.3, -1.2], rtol=1e-9)
    standardised = dict(zip(do, dataset.scaler.transform(raw)[[0, 4]], strict=True))
    np.testing.assert_allclose(
        dataset.scaler.inverse(posterior.interventional_mean(standardised)), raw, rtol=0, atol=1e-6
    )


def test_queries_are_answered_alike_by_every_fit_and_after_saving(asked, tmp_path):
    before = queries(asked.posterior)
    assert_same(queries(asked.method.fit(asked.dataset, rng())), before)
    save_posterior(asked.posterior, tmp_path / "posterior.npz")
    assert_same(queries(load_posterior(tmp_path / "posterior.npz")), before)


def test_an_intervention_changes_descendants_alone(asked):
    graphs, _ = asked.posterior.query_graphs
    reach = np.linalg.matrix_power(np.eye(5) + graphs.sum(axis=0), 5) > 0  # in any graph
    for cause in range(5):
        change = asked.posterior.interventional_mean({cause: 1.0}) - asked.posterior.interventional_mean({})
        np.testing.assert_allclose(change[~reach[cause]], 0, rtol=0, atol=1e-12)


def global_state() -> dict[str, object]:
    """What a method must not change for others in its process."""
    root = logging.getLogger()
    return {
        "numpy generator": str(np.random.get_state()),  # noqa: NPY002
        "torch generator": torch.get_rng_state().tolist(),
        "python generator": random.getstate(),
        "torch default type": torch.get_default_dtype(),
        "torch threads": torch.get_num_threads(),
        "torch gradients": torch.is_grad_enabled(),
        "numpy errors": np.geterr(),
        "logging": (root.level, list(root.handlers), logging.root.manager.disable),
        "working directory": os.getcwd(),
        "environment": dict(os.environ),
    }


def test_global_state_is_left_as_it_is(name, tmp_path, monkeypatch, caplog):
    method, dataset = method_named(name), random_graph_data()
    # A state that no earlier fit has left behind.
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.WARNING + 5)
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(20_480_131)
    before = global_state()
    method.fit(dataset, rng()).sample_graphs(5, rng())
    assert global_state() == before


def with_column(values: np.ndarray) -> Dataset:
    """Good data but for the last column, which nobody looked at."""
    dataset = random_graph_data()
    observations = dataset.observations.copy()
    observations[:, -1] = values
    return replace(dataset, observations=observations)


BAD_DATA = {
    "not a number": lambda: with_column(np.where(np.arange(100) == 7, np.nan, np.arange(100.0))),
    "infinite": lambda: with_column(np.where(np.arange(100) == 7, np.inf, np.arange(100.0))),
    "constant column": lambda: with_column(np.full(100, 1.5)),
    "duplicated column": lambda: with_column(random_graph_data().observations[:, 0]),
    "duplicated name": lambda: unchecked(names=("X0", "X1", "X2", "X3", "X0")),
    "one row": lambda: unchecked(observations=np.zeros((1, 5)), intervened=np.zeros((1, 5), dtype=bool)),
}


def unchecked(**changes: object) -> Dataset:
    """A data set with fields that its own checks would refuse."""
    dataset = random_graph_data()
    for field, value in changes.items():
        object.__setattr__(dataset, field, value)
    return dataset


@pytest.mark.parametrize("defect", BAD_DATA)
def test_data_that_nothing_can_be_learnt_from_are_refused(name, defect):
    method, dataset = method_named(name), BAD_DATA[defect]()
    with pytest.raises(InvalidInput) as caught:
        method.fit(dataset, rng())
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


def test_as_many_parents_as_variables_are_refused(name):
    if not hasattr(method_named(name), "max_parents"):
        pytest.skip("no bound on the number of parents")
    for max_parents in (5, 6):
        with pytest.raises(InvalidInput, match="max_parents: expected 0 to 4 for 5 variables"):
            method_named(name, max_parents=max_parents).fit(random_graph_data(), rng())
