from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from baselines.gadget import GADGET, _adjacency
from bci.errors import InvalidInput
from bci.graphs import find_cycle

QUICK = {"burn_in": 100, "iterations": 100, "mc3_chains": 4}


def test_a_collider_is_directed(collider, rng):
    posterior = GADGET(**QUICK).fit(collider, rng)
    graphs, weights = posterior.sample_graphs(1, rng)
    assert graphs.shape == (10, 4, 4)
    np.testing.assert_array_equal(weights, np.full(10, 0.1))
    assert all(find_cycle(graph) == [] for graph in graphs)
    assert posterior.edge_probabilities[collider.graph].min() >= 0.8
    assert posterior.edge_probabilities[collider.graph.T].max() <= 0.2


def test_candidates_are_no_limit_where_a_node_has_more(collider, rng):
    posterior = GADGET(**QUICK, K=1).fit(collider, rng)  # X2 has two parents, d = 2 allows them
    assert posterior.edge_probabilities[collider.graph].min() >= 0.8


def test_two_variables_have_edges_in_both_directions(chain, rng):
    two = type(chain).from_raw(chain.observations[:, :2], "ab")
    probabilities = GADGET(**QUICK | {"iterations": 1000}).fit(two, rng).edge_probabilities
    assert probabilities[0, 1] + probabilities[1, 0] == pytest.approx(1)  # an edge always
    assert 0.2 < probabilities[0, 1] < 0.8  # the score is equivalent


def test_the_chains_depend_on_the_seed_alone(chain):
    settings = QUICK | {"thinning": 1}
    fits = [GADGET(**settings).fit(chain, np.random.default_rng(seed)).edge_probabilities for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()


def test_sumu_reads_every_setting():
    """It ignores those that it does not know."""
    source = (Path(importlib.util.find_spec("sumu").origin).parent / "gadget.py").read_text()
    read = set(re.findall(r'kwargs\.get\("(\w+)"\)', source.partition("class DAGR:")[0]))
    assert read == {*GADGET().settings, "data", "cp_path", "ess"}  # a file, and what only score "bdeu" has


def test_families_are_node_first_and_parents_second():
    np.testing.assert_array_equal(_adjacency([(0, (1, 2)), (1,), (2, (1,))], 3), [[0, 0, 0], [1, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"K": 0}, "K"),
        ({"scoref": "bdeu"}, "scoref"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"cp_algo": "pc"}, "cp_algo"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        GADGET(**settings)
