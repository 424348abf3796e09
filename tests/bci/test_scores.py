import numpy as np
import pytest
import torch
from gp_oracle import log_likelihood, log_prior, optimum

from bci.data.simulate import simulated_dataset
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.kernels import NormalInverseGamma
from bci.scores import score_parent_sets


def dataset(rows, intervened=None):
    rows = np.asarray(rows, dtype=float)
    return Dataset.from_raw(rows, [f"X{node}" for node in range(rows.shape[1])], intervened=intervened)


@pytest.fixture(scope="module")
def data():
    settings = {"graph_model": "er", "expected_degree": 2, "mechanism": "gp"}
    return simulated_dataset(num_nodes=5, num_samples=60, seed=4, **settings)


@pytest.fixture(scope="module")
def table(data):
    return score_parent_sets(data, 3)


def test_every_set_that_a_node_is_not_in_has_a_score(table):
    in_set = table.parent_sets.membership.T
    assert table.scores.dtype == torch.float64
    assert (table.scores[in_set] == -torch.inf).all()
    assert table.scores[~in_set].isfinite().all()
    assert table.hyperparameters[in_set].isnan().all()
    assert table.hyperparameters[:, 0].isnan().all()
    assert table.hyperparameters[:, 1:][~in_set[:, 1:]].isfinite().all()


def test_scores_agree_with_roots_in_closed_form_and_dense_optima(data, table):
    rows = data.observations
    for node in range(5):
        root = NormalInverseGamma().log_marginal_likelihood(torch.tensor(rows[:, node]))
        assert float(table.scores[node, 0]) == pytest.approx(root, rel=1e-12)
        for number, members in enumerate(table.parent_sets.members[1:], start=1):
            if node not in members:
                _, score, _ = optimum(rows[:, members], rows[:, node])
                assert float(table.scores[node, number]) == pytest.approx(score, abs=0.05)


def test_per_sample_weight_scores_the_optimum_of_another_objective(data, table):
    weighted = score_parent_sets(data, 1, likelihood_weight="per_sample")
    rows = data.observations
    for node in range(5):
        for number, members in enumerate(weighted.parent_sets.members[1:], start=1):
            if node in members:
                continue
            inputs, target = rows[:, members], rows[:, node]
            parameters = weighted.hyperparameters[node, number].numpy()
            score = log_likelihood(inputs, target, parameters) + log_prior(1, parameters)
            assert float(weighted.scores[node, number]) == pytest.approx(score, abs=0.05)
            objective = log_likelihood(inputs, target, parameters) / 60 + log_prior(1, parameters)
            assert objective == pytest.approx(optimum(inputs, target, 1 / 60)[0], abs=2e-3)
            assert float(weighted.scores[node, number]) <= float(table.scores[node, number]) + 0.05


def test_a_node_is_scored_on_the_rows_where_it_was_not_set(data):
    mask = np.zeros((60, 5), dtype=bool)
    mask[:15, 1] = mask[10:25, 3] = True
    scaled = dataset(data.observations, mask)
    table = score_parent_sets(scaled, 2)
    for node in range(5):
        kept = ~mask[:, node]
        filtered = Dataset(
            scaled.observations[kept], scaled.names, np.zeros((kept.sum(), 5), dtype=bool), scaled.scaler
        )
        alone = score_parent_sets(filtered, 2)
        torch.testing.assert_close(table.scores[node], alone.scores[node], rtol=0, atol=1e-6)


def test_relabelling_the_nodes_relabels_the_scores(data, table):
    order = [3, 0, 4, 1, 2]
    permuted = score_parent_sets(dataset(data.observations[:, order]), 3)
    for number, members in enumerate(permuted.parent_sets.members):
        original = table.parent_sets.number(order[node] for node in members)
        for node in range(5):
            expected = float(table.scores[order[node], original])
            assert float(permuted.scores[node, number]) == pytest.approx(expected, abs=0.01)


def test_scores_repeat_and_do_not_depend_on_the_number_of_threads(data):
    once = score_parent_sets(data, 2).scores
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2 if threads == 1 else 1)
        again = score_parent_sets(data, 2)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(again.scores, once, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(score_parent_sets(data, 2).scores, once, rtol=0, atol=0)


rng = np.random.default_rng(0)
line = rng.normal(size=100)
AWKWARD = {
    "three rows": rng.normal(size=(3, 4)),
    "five rows": rng.normal(size=(5, 4)),
    "ties": rng.integers(0, 3, size=(80, 4)),
    "binary": rng.integers(0, 2, size=(80, 4)),
    "heavy tails": np.exp(3 * rng.normal(size=(100, 4))),
    "scales apart": rng.normal(size=(100, 4)) * [1e-8, 1, 1e8, 1e3],
    "near copies": np.stack([line, line + 1e-5 * rng.normal(size=100), np.sin(3 * line), line**2], axis=1),
}


@pytest.mark.parametrize("kind", AWKWARD)
def test_awkward_data_have_finite_scores(kind):
    table = score_parent_sets(dataset(AWKWARD[kind]), 3)
    assert table.scores[~table.parent_sets.membership.T].isfinite().all()


def test_two_rows_can_be_scored():
    scaled = Dataset(
        np.array([[0.7, -0.7], [-0.7, 0.6]]), ("A", "B"), np.zeros((2, 2), dtype=bool), dataset(np.eye(3)[:, :2]).scaler
    )
    assert score_parent_sets(scaled, 1).scores.isfinite().sum() == 4


def test_only_roots_where_no_parents_are_allowed(data, table):
    torch.testing.assert_close(score_parent_sets(data, 0).scores, table.scores[:, :1])


@pytest.mark.parametrize("max_parents", [5, -1])
def test_max_parents_out_of_range_is_refused(data, max_parents):
    with pytest.raises(InvalidInput, match="max_parents"):
        score_parent_sets(data, max_parents)


def test_a_node_always_intervened_on_is_refused(data):
    mask = np.zeros((60, 5), dtype=bool)
    mask[1:, 2] = True
    with pytest.raises(InvalidInput, match=r"'X2'.*at least 2 rows without an intervention"):
        score_parent_sets(dataset(data.observations, mask), 1)
