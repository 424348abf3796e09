import numpy as np
import pytest
import torch
from gp_oracle import optimum

import bci.family_scores
from bci.data.simulate import simulated_dataset
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.family_scores import FamilyScoreCache, family_keys, score_families
from bci.scores import score_parent_sets


def simulated(num_nodes, num_samples, seed=4):
    settings = {"graph_model": "er", "expected_degree": 2, "mechanism": "gp"}
    return simulated_dataset(num_nodes=num_nodes, num_samples=num_samples, seed=seed, **settings)


@pytest.fixture(scope="module")
def data():
    return simulated(5, 60)


def all_families(num_nodes, max_parents):
    """Nodes (f,), parents (f, d) and numbers of the sets (f,) of all families."""
    table = score_parent_sets(simulated(num_nodes, 20), max_parents).parent_sets
    numbers, nodes = torch.nonzero(~table.membership, as_tuple=True)
    return nodes, table.membership[numbers], numbers


@pytest.mark.parametrize("likelihood_weight", ["full", "per_sample"])
def test_families_have_the_scores_of_the_table(data, likelihood_weight):
    nodes, parents, numbers = all_families(5, 3)
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(0))
    nodes, parents, numbers = nodes[order], parents[order], numbers[order]
    table = score_parent_sets(data, 3, likelihood_weight=likelihood_weight)
    found = score_families(data, nodes, parents, likelihood_weight=likelihood_weight)
    torch.testing.assert_close(found.scores, table.scores[nodes, numbers], rtol=0, atol=1e-6)
    expected = table.hyperparameters[nodes, numbers]
    torch.testing.assert_close(found.hyperparameters, expected, rtol=0, atol=1e-5, equal_nan=True)


def test_few_families_do_not_depend_on_the_others_asked_for(data):
    nodes, parents, _ = all_families(5, 2)
    every = score_families(data, nodes, parents)
    some = torch.tensor([3, 40, 17])
    torch.testing.assert_close(
        score_families(data, nodes[some], parents[some]).scores, every.scores[some], rtol=0, atol=1e-6
    )
    assert len(score_families(data, nodes[:0], parents[:0]).scores) == 0


def test_scores_do_not_depend_on_how_many_sets_are_taken_at_once(data, monkeypatch):
    nodes, parents, _ = all_families(5, 2)
    expected = score_families(data, nodes, parents).scores
    monkeypatch.setattr(bci.family_scores, "_SETS_AT_ONCE", 3)
    torch.testing.assert_close(score_families(data, nodes, parents).scores, expected, rtol=0, atol=1e-6)


def test_large_sets_agree_with_dense_optima():
    """Sets of 4 to 11 members, some of true parents, scored either way."""
    data = simulated(12, 80)
    rng = np.random.default_rng(0)
    nodes, parents = torch.arange(12).repeat(2), torch.zeros(24, 12, dtype=torch.bool)
    for place, node in enumerate(nodes.tolist()):
        others = [*np.flatnonzero(data.graph[:, node]), *rng.permutation(12)]
        distinct = [other for other in dict.fromkeys(others) if other != node]
        parents[place, distinct[: 4 + place % 8]] = True
    plain = score_families(data, nodes, parents, search="plain").scores
    thorough = score_families(data, nodes, parents, search="thorough").scores
    assert float((plain - thorough).abs().max()) < 0.05
    for place in range(0, 24, 3):
        members = parents[place].nonzero()[:, 0].tolist()
        _, score, _ = optimum(data.observations[:, members], data.observations[:, nodes[place]])
        assert float(plain[place]) == pytest.approx(score, abs=0.05)


AWKWARD = {
    "five rows": lambda rng: rng.normal(size=(5, 6)),
    "binary": lambda rng: rng.integers(0, 2, size=(80, 6)),
    "heavy tails": lambda rng: np.exp(3 * rng.normal(size=(100, 6))),
    "near copies": lambda rng: rng.normal(size=(100, 1)) + 1e-5 * rng.normal(size=(100, 6)),
}


@pytest.mark.parametrize("kind", AWKWARD)
def test_plain_scores_of_awkward_data_are_finite_and_near_the_thorough_ones(kind):
    rows = AWKWARD[kind](np.random.default_rng(0))
    data = Dataset.from_raw(np.asarray(rows, dtype=float), "abcdef")
    nodes = torch.arange(6).repeat(2)
    parents = ~torch.eye(6, dtype=torch.bool)[nodes]
    parents[6:][torch.arange(6), (torch.arange(6) + 1) % 6] = False  # four parents
    plain = score_families(data, nodes, parents, search="plain").scores
    assert plain.isfinite().all()
    thorough = score_families(data, nodes, parents, search="thorough").scores
    assert float((thorough - plain).max()) < 0.3


def test_a_node_is_scored_on_the_rows_where_it_was_not_set(data):
    mask = np.zeros((60, 5), dtype=bool)
    mask[:15, 1] = mask[10:25, 3] = True
    mixed = Dataset.from_raw(data.observations, data.names, intervened=mask)
    nodes, parents, numbers = all_families(5, 2)
    table = score_parent_sets(mixed, 2)
    torch.testing.assert_close(
        score_families(mixed, nodes, parents).scores, table.scores[nodes, numbers], rtol=0, atol=1e-6
    )
    mask[:, 2] = True
    mask[0, 2] = False
    with pytest.raises(InvalidInput, match="expected at least 2 rows without an intervention"):
        score_families(Dataset.from_raw(data.observations, data.names, intervened=mask), nodes, parents)


def test_a_node_among_its_own_parents_is_refused(data):
    with pytest.raises(ValueError, match="no node among its own parents"):
        score_families(data, torch.tensor([1]), torch.tensor([[False, True, False, False, True]]))


def test_a_cache_scores_every_family_once(data, monkeypatch):
    asked = []

    def counted(dataset, nodes, parents, **settings):
        asked.append(len(nodes))
        assert settings == {"likelihood_weight": "per_sample", "search": "plain"}
        return score_families(dataset, nodes, parents, **settings)

    monkeypatch.setattr(bci.family_scores, "score_families", counted)
    nodes, parents, _ = all_families(5, 2)
    cache = FamilyScoreCache(data, likelihood_weight="per_sample", search="plain")
    twice = torch.cat([torch.arange(20), torch.arange(20).flip(0)])
    first = cache.scores(nodes[twice], parents[twice])
    torch.testing.assert_close(first[:20], first[20:].flip(0), rtol=0, atol=0)
    everything = cache.scores(nodes, parents)
    torch.testing.assert_close(everything[:20], first[:20], rtol=0, atol=0)
    expected = score_families(data, nodes, parents, likelihood_weight="per_sample").scores
    torch.testing.assert_close(everything, expected, rtol=0, atol=1e-6)
    cache.scores(nodes, parents)
    assert asked == [20, len(nodes) - 20]
    assert len(cache) == len(nodes)


def test_keys_tell_families_apart():
    nodes, parents, _ = all_families(5, 4)
    assert len(set(family_keys(nodes, parents).tolist())) == len(nodes)
    assert family_keys(nodes[:1], parents[:1]) == family_keys(nodes[:1].clone(), parents[:1].clone())
