"""The exact posterior over all d! causal orders, by dynamic programming over the 2^d sets of predecessors.

Koivisto & Sood (2004), "Exact Bayesian structure discovery in Bayesian networks". The evidence of a node depends on an
order only through the set U of its predecessors, so sums over orders become sums over paths from the empty set to the
full one.
"""

from __future__ import annotations

import logging
from functools import cached_property

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor

from bci.dataset import Floats
from bci.errors import InvalidInput
from bci.marginalisation import log_num_sets
from bci.orders.subsets import log_subset_sums, log_superset_sums, popcounts
from bci.scores import ScoreTable

_MANY_NODES = 22
_EXTRA_TABLES = 10  # tables over all sets that exist beside one per node

_logger = logging.getLogger(__name__)


def check_exact_orders_fit(num_nodes: int) -> None:
    """For callers that want to know before they compute scores: refuse what memory cannot hold, warn above 22 nodes.

    Raises:
        InvalidInput: with the estimate and what is free.
    """
    _refuse_beyond_memory(num_nodes)
    if num_nodes > _MANY_NODES:
        gibibytes = _bytes_needed(num_nodes) / 2**30
        _logger.warning("exact orders of %d variables take about %.1f GiB", num_nodes, gibibytes)


def _refuse_beyond_memory(num_nodes: int) -> None:
    needed, free = _bytes_needed(num_nodes), float(psutil.virtual_memory().available)
    if needed > free:
        raise InvalidInput(
            f"exact orders: expected enough memory for {num_nodes} variables, got {free / 2**30:,.1f} GiB free of "
            f"{needed / 2**30:,.1f} GiB needed; use method=arco_gp or fewer variables"
        )


def _bytes_needed(num_nodes: int) -> float:
    with np.errstate(over="ignore"):  # infinite for a thousand nodes
        return float(np.ldexp(8.0 * (num_nodes + _EXTRA_TABLES), num_nodes))


class ExactOrders:
    """`p(L | D)` under a uniform prior over orders, for the scores of a table.

    Args:
        table: scores of all parent sets.

    Raises:
        InvalidInput: too many nodes for the memory there is.
    """

    def __init__(self, table: ScoreTable) -> None:
        self._table = table
        self._num_nodes = table.parent_sets.num_nodes
        _refuse_beyond_memory(self._num_nodes)
        self._bitmasks = table.parent_sets.bitmasks.numpy()
        self._scores: Floats = table.scores.cpu().numpy()
        self._counts = popcounts(self._num_nodes)
        log_counts: Floats = log_num_sets(table.parent_sets).numpy()
        # Sets as large as d - 1 precede a node at most; the full set has no node left to score.
        self._log_num_sets = np.append(log_counts, 0.0)[self._counts]
        self._node_evidence = self._log_node_evidence()
        self._forward = self._log_path_sums()

    @property
    def log_evidence(self) -> float:
        """`log p(D, psi*)`: the evidence of orders averaged over the uniform prior."""
        return float(self._forward[-1]) - float(np.log(np.arange(1, self._num_nodes + 1)).sum())

    @cached_property
    def parent_set_probabilities(self) -> Tensor:
        """`p(S is the parent set of i | D)`, (nodes, sets) float64."""
        backward = self._log_remaining_sums()
        everything = np.arange(1 << self._num_nodes)
        probabilities = np.zeros_like(self._scores)
        for node in range(self._num_nodes):
            with_node = everything | (1 << node)
            through = self._forward + backward[with_node] - self._log_num_sets - self._forward[-1]
            through[everything == with_node] = -np.inf
            log_share = log_superset_sums(through)[self._bitmasks] + self._scores[node]
            probabilities[node] = np.exp(log_share)
        return torch.as_tensor(probabilities, device=self._table.scores.device)

    def sample(self, n: int, rng: np.random.Generator) -> Tensor:
        """`n` independent orders (n, d) int64, drawn from the last place to the first."""
        orders = np.empty((n, self._num_nodes), dtype=np.int64)
        remaining = np.full(n, (1 << self._num_nodes) - 1)
        bits = 1 << np.arange(self._num_nodes)
        nodes = np.arange(self._num_nodes)
        for place in reversed(range(self._num_nodes)):
            member = (remaining[:, None] & bits) != 0
            before = remaining[:, None] & ~bits
            log_weights = np.where(member, self._forward[before] + self._node_evidence[nodes, before], -np.inf)
            last = np.argmax(log_weights + rng.gumbel(size=log_weights.shape), axis=1)
            orders[:, place] = last
            remaining &= ~bits[last]
        return torch.as_tensor(orders, device=self._table.scores.device)

    def log_prob(self, orders: Tensor) -> Tensor:
        """Log posterior probabilities (n,) of orders (n, d)."""
        sequence = orders.cpu().numpy()
        predecessors = np.cumsum(1 << sequence, axis=1) - (1 << sequence)
        log_prob = self._node_evidence[sequence, predecessors].sum(axis=1) - self._forward[-1]
        return torch.as_tensor(log_prob, device=orders.device)

    def _log_node_evidence(self) -> Floats:
        """`log alpha_i(U)`, (nodes, 2^d); where i is in U it is not used."""
        evidence = np.empty((self._num_nodes, 1 << self._num_nodes))
        for node in range(self._num_nodes):
            log_values = np.full(1 << self._num_nodes, -np.inf)
            log_values[self._bitmasks] = self._scores[node]
            evidence[node] = log_subset_sums(log_values) - self._log_num_sets
        return evidence

    def _layers(self) -> list[NDArray[np.intp]]:
        """The sets of each size, smallest first."""
        by_size = np.argsort(self._counts, kind="stable")
        return np.split(by_size, np.cumsum(np.bincount(self._counts))[:-1])

    def _log_path_sums(self) -> Floats:
        """F(U): the sum over orders of U of the product of node evidences."""
        forward = np.full(1 << self._num_nodes, -np.inf)
        forward[0] = 0.0
        for layer in self._layers()[1:]:
            total = np.full(len(layer), -np.inf)
            for node in range(self._num_nodes):
                last = np.nonzero(layer & (1 << node))[0]
                before = layer[last] ^ (1 << node)
                total[last] = np.logaddexp(total[last], forward[before] + self._node_evidence[node, before])
            forward[layer] = total
        return forward

    def _log_remaining_sums(self) -> Floats:
        """B(U): the sum over orders of the nodes outside U, placed after U, of the product of node evidences."""
        backward = np.full(1 << self._num_nodes, -np.inf)
        backward[-1] = 0.0
        for layer in reversed(self._layers()[:-1]):
            total = np.full(len(layer), -np.inf)
            for node in range(self._num_nodes):
                first = np.nonzero((layer & (1 << node)) == 0)[0]
                at = layer[first]
                total[first] = np.logaddexp(total[first], self._node_evidence[node, at] + backward[at | (1 << node)])
            backward[layer] = total
        return backward
