"""Score tables of random numbers, the model they describe written out in full, and random graphs."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp

from bci.parent_sets import ParentSets
from bci.scores import ScoreTable


class Joint(NamedTuple):
    """Every pair of a causal order and a graph that fits it."""

    orders: np.ndarray  # (pairs, nodes)
    sets: np.ndarray  # (pairs, nodes): number of every node's parent set
    log_prob: np.ndarray  # (pairs,): log p(order) p(graph | order) p(data | graph)

    @property
    def log_evidence(self):
        return logsumexp(self.log_prob)

    @property
    def posterior(self):
        return np.exp(self.log_prob - self.log_evidence)


@pytest.fixture
def table_of():
    """A function: scores (nodes, sets), max size -> score table, with no score where the node is in the set."""

    def build(scores, max_size):
        parent_sets = ParentSets(len(scores), max_size)
        scores = torch.as_tensor(scores, dtype=torch.float64).clone()
        for number, members in enumerate(parent_sets.members):
            scores[list(members), number] = -torch.inf
        return ScoreTable(parent_sets, scores, torch.full((*scores.shape, 4), torch.nan, dtype=torch.float64))

    return build


@pytest.fixture
def random_table(table_of):
    """A function: nodes, max size, seed, standard deviation of scores -> score table."""

    def build(num_nodes, max_size, seed=0, spread=2.0):
        rng = np.random.default_rng(seed)
        num_sets = len(ParentSets(num_nodes, max_size))
        return table_of(rng.normal(-3.0, spread, (num_nodes, num_sets)), max_size)

    return build


@pytest.fixture
def joint_of():
    """A function: score table -> all orders and graphs, each with its log joint probability, by nested loops."""

    def build(table):
        num_nodes, max_size = table.parent_sets.num_nodes, table.parent_sets.max_size
        scores = table.scores.tolist()
        rows = []
        for order in permutations(range(num_nodes)):
            log_prior = -math.lgamma(num_nodes + 1)
            candidates = []
            for node in range(num_nodes):
                before = sorted(order[: order.index(node)])
                fitting = [s for size in range(max_size + 1) for s in combinations(before, size)]
                log_prior -= math.log(len(fitting))
                candidates.append([table.parent_sets.number(members) for members in fitting])
            for sets in product(*candidates):
                rows.append((order, sets, log_prior + sum(scores[node][s] for node, s in enumerate(sets))))
        orders, sets, log_prob = zip(*rows, strict=True)
        return Joint(np.array(orders), np.array(sets), np.array(log_prob))

    return build


@pytest.fixture
def all_orders():
    """A function: number of nodes -> all orders (orders, nodes)."""
    return lambda num_nodes: torch.tensor(list(permutations(range(num_nodes))))


@pytest.fixture
def assert_drawn_from():
    """A function: rows that were drawn, the possible rows, their probabilities; chi-square at the level 1e-3."""

    def check(drawn, possible, probabilities):
        number = {tuple(row): k for k, row in enumerate(np.asarray(possible).tolist())}
        counts = np.bincount([number[tuple(row)] for row in np.asarray(drawn).tolist()], minlength=len(number))
        expected = len(drawn) * np.asarray(probabilities)
        rare = expected < 5
        if rare.any():  # one class, as the test asks for five expected in each
            counts = np.append(counts[~rare], counts[rare].sum())
            expected = np.append(expected[~rare], expected[rare].sum())
        assert len(expected) > 3
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3

    return check


@pytest.fixture
def random_dags():
    """A function: how many, nodes, density, generator -> DAGs (n, d, d) with permuted labels."""

    def draw(n, num_nodes, density, rng):
        graphs = []
        for _ in range(n):
            order = rng.permutation(num_nodes)
            upper = np.triu(rng.random((num_nodes, num_nodes)) < density, 1)
            graphs.append(upper[np.ix_(order, order)])
        return np.array(graphs)

    return draw
