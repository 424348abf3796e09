from itertools import combinations

import numpy as np
import pytest
import torch
from gp_oracle import log_likelihood, log_prior, optimum

from bci import expansions, map_estimation
from bci.data.simulate import simulated_dataset
from bci.map_estimation import MapProblem

NATS = 0.05


def observations(num_nodes, num_samples, seed):
    settings = {"graph_model": "er", "expected_degree": 2, "mechanism": "gp"}
    return simulated_dataset(num_nodes=num_nodes, num_samples=num_samples, seed=seed, **settings).observations


def solve(rows, members, likelihood_weight=1.0):
    rows = torch.tensor(rows)
    return MapProblem(rows, torch.tensor(members), torch.arange(rows.shape[1]), likelihood_weight).solve()


@pytest.mark.parametrize("likelihood_weight", [1.0, 1 / 60])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_estimates_agree_with_dense_optima(size, likelihood_weight):
    rows = observations(5, 60, seed=1)
    members = list(combinations(range(5), size))
    found = solve(rows, members, likelihood_weight)
    for number, members_here in enumerate(members):
        for target in set(range(5)) - set(members_here):
            inputs = rows[:, members_here]
            objective, score, _ = optimum(inputs, rows[:, target], likelihood_weight)
            assert float(found.objective[number, target]) == pytest.approx(objective, abs=NATS * likelihood_weight**0.5)
            # A flat objective leaves the score itself less certain than the objective.
            assert float(found.score[number, target]) == pytest.approx(
                score, abs=NATS if likelihood_weight == 1 else 0.2
            )
            parameters = found.parameters[number, target].numpy()
            there = log_likelihood(inputs, rows[:, target], parameters) + log_prior(size, parameters)
            assert float(found.score[number, target]) == pytest.approx(there, abs=NATS)


@pytest.mark.parametrize("size", [1, 2])
def test_shared_climbs_agree_with_dense_optima(monkeypatch, size):
    """Of many rows, of which these are few."""
    monkeypatch.setattr(map_estimation, "_DENSE_ROWS", 0)
    rows = observations(5, 80, seed=2)
    members = list(combinations(range(5), size))
    found = solve(rows, members)
    for number, members_here in enumerate(members):
        for target in set(range(5)) - set(members_here):
            _, score, _ = optimum(rows[:, members_here], rows[:, target])
            assert float(found.score[number, target]) == pytest.approx(score, abs=NATS)


def nearly_deterministic(num_samples, noise, seed):
    """Six variables of which four are functions of the others, but for a little noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(num_samples, 6))
    functions = {1: np.sin(1.5 * rows[:, 0]), 2: np.tanh(rows[:, 0]) + rows[:, 5] / 2, 3: rows[:, 0] ** 2}
    for node, function in functions.items():
        rows[:, node] = function + noise * rows[:, node]
    return (rows - rows.mean(axis=0)) / rows.std(axis=0, ddof=1)


@pytest.mark.parametrize("dense_rows", [300, 0])
@pytest.mark.parametrize(("noise", "size"), [(0.005, 1), (0.01, 2), (0.03, 2), (0.1, 3)])
def test_nearly_deterministic_targets(monkeypatch, dense_rows, noise, size):
    """The noise is far below what low-rank kernels can tell."""
    monkeypatch.setattr(map_estimation, "_DENSE_ROWS", dense_rows)
    rows = nearly_deterministic(60, noise, seed=60)
    members = list(combinations(range(6), size))[::2]
    found = solve(rows, members)
    for number, members_here in enumerate(members):
        inputs = rows[:, members_here]
        for target in set(range(1, 4)) - set(members_here):
            parameters = found.parameters[number, target].numpy()
            there = log_likelihood(inputs, rows[:, target], parameters) + log_prior(size, parameters)
            assert float(found.score[number, target]) == pytest.approx(there, abs=NATS)
            _, score, _ = optimum(inputs, rows[:, target])
            assert float(found.score[number, target]) == pytest.approx(score, abs=NATS if dense_rows else 0.3)


@pytest.mark.parametrize("dense_rows", [300, 0])
def test_the_better_of_two_modes_is_found(monkeypatch, dense_rows):
    """A function rough in one input: smooth with much noise and rough with little noise are both local optima."""
    monkeypatch.setattr(map_estimation, "_DENSE_ROWS", dense_rows)
    rng = np.random.default_rng(8)
    cause, other = rng.normal(size=(2, 200))
    effect = np.sin(5 * cause) + 0.3 * rng.normal(size=200)
    rows = np.stack([cause, other, effect], axis=1)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0, ddof=1)
    _, score, parameters = optimum(rows[:, :2], rows[:, 2])
    found = solve(rows, [[0, 1]])
    assert parameters[0] < np.log(0.65 * (2 - 1 / 30))
    assert float(found.score[0, 2]) == pytest.approx(score, abs=NATS)


def test_members_of_the_set_have_no_estimate():
    found = solve(observations(5, 30, seed=0)[:, :4], [[0, 2], [1, 3]])
    member = torch.tensor([[True, False, True, False], [False, True, False, True]])
    assert (found.score[member] == -torch.inf).all()
    assert found.parameters[member].isnan().all()
    assert found.score[~member].isfinite().all()
    assert found.parameters[~member].isfinite().all()


def test_estimates_do_not_depend_on_the_size_of_batches(monkeypatch):
    rows = observations(6, 50, seed=3)
    members = list(combinations(range(6), 2))
    together = solve(rows, members)
    monkeypatch.setattr(expansions, "_BATCH_BYTES", {"cpu": 1})
    monkeypatch.setattr(expansions, "_DENSE_BYTES", {"cpu": 1})
    alone = solve(rows, members)
    torch.testing.assert_close(together.score, alone.score, rtol=0, atol=1e-3)


def test_batches_keep_to_their_memory(monkeypatch):
    """Expansions see so few sets at once that their matrices stay below the budget."""
    budget, num_rows = 2**20, 100
    monkeypatch.setattr(expansions, "_BATCH_BYTES", {"cpu": budget})
    original, seen = expansions.kernel_spectrum, []

    def spy(inputs, targets, log_kernel, pivots):
        seen.append(len(inputs) * num_rows * pivots.shape[1] * 100)
        return original(inputs, targets, log_kernel, pivots)

    monkeypatch.setattr(expansions, "kernel_spectrum", spy)
    solve(observations(7, num_rows, seed=0), list(combinations(range(7), 2)))
    assert len(seen) > 1
    assert max(seen) <= budget


def test_dense_matrices_are_left_out_where_rows_are_too_many(monkeypatch):
    monkeypatch.setattr(map_estimation, "_DENSE_ROWS", 0)
    monkeypatch.setattr(expansions, "_MOST_DENSE_ROWS", 59)
    monkeypatch.setattr(expansions, "dense_expansion", None)
    found = solve(nearly_deterministic(60, 0.01, seed=60), [[0], [5]])
    assert found.score[:, 1:5].isfinite().all()
    with pytest.raises(TypeError):
        solve(nearly_deterministic(59, 0.01, seed=60), [[0], [5]])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_parent_sets_of_the_benchmark_data(seed):
    rows = observations(20, 200, seed)
    rng = np.random.default_rng(seed)
    for size in range(1, 5):
        members = [sorted(rng.choice(20, size, replace=False).tolist()) for _ in range(15)]
        found = solve(rows, members)
        for number, members_here in enumerate(members):
            target = rng.choice(np.setdiff1d(range(20), members_here))
            _, score, _ = optimum(rows[:, members_here], rows[:, target])
            assert float(found.score[number, target]) == pytest.approx(score, abs=NATS)
