"""Structural marginalisation: exact expectations over parent sets given a causal order.

Toth et al. (2025), Propositions 1 and 2. Given an order L the parent sets of node i are independent between nodes,
`p(S | L, D)` proportional to `p(S | L) exp s_i(S)` over the sets S that fit, with a uniform prior
`p(S | L) = 1 / sum_{k <= K} C(m, k)` for m predecessors. Evidence and weights are logarithms.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bci.parent_sets import ParentSets, num_sets
from bci.scores import ScoreTable

_ENTRIES_AT_ONCE = 2**24  # of the (orders, nodes, sets) tensors that weights and probabilities take
_LEAST_SUM = 1e-250  # relative to the best set; all that a sum loses to underflow is less than 1e-50 of it


def positions_in(orders: Tensor) -> Tensor:
    """Place of every node in every order: the inverse of the permutations `orders` (orders, nodes)."""
    return torch.argsort(orders, dim=1)


def log_parent_set_weights(table: ScoreTable, orders: Tensor) -> Tensor:
    """`log p(S | L) + s_i(S)`, (orders, nodes, sets); -inf for sets that do not fit the order."""
    positions = positions_in(orders)
    latest = table.parent_sets.latest_positions(positions)
    fits = latest[:, None, :] < positions[:, :, None]
    log_count = log_num_sets(table.parent_sets).to(orders.device)[positions]
    return torch.where(fits, table.scores, -torch.inf) - log_count[:, :, None]


def log_node_evidence(table: ScoreTable, orders: Tensor) -> Tensor:
    """`log alpha_i(L) = log sum_S p(S | L) exp s_i(S)`, (orders, nodes).

    The sums of a node are products of a matrix of zeros and ones with `exp(s_i(S) - max s_i)`. Where only sets fit that
    are too far below the best one for that, the sum is taken in logarithms.
    """
    positions = positions_in(orders)
    latest = table.parent_sets.latest_positions(positions)
    best = table.scores.amax(dim=1)
    relative = (table.scores - best[:, None]).exp()
    log_sums = torch.empty_like(positions, dtype=relative.dtype)
    for node, scores in enumerate(table.scores):
        fits = latest < positions[:, node, None]
        sums = fits.to(relative.dtype) @ relative[node]
        log_sums[:, node] = best[node] + sums.log()
        lost = sums < _LEAST_SUM
        if lost.any():
            log_sums[lost, node] = torch.logsumexp(torch.where(fits[lost], scores, -torch.inf), dim=1)
    return log_sums - log_num_sets(table.parent_sets).to(orders.device)[positions]


def log_order_evidence(table: ScoreTable, orders: Tensor) -> Tensor:
    """`log p(D, psi* | L)`, (orders,): the sum of `log_node_evidence` over nodes. Equal orders are computed once."""
    distinct, which = torch.unique(orders, dim=0, return_inverse=True)
    chunks = torch.split(distinct, orders_at_once(table))
    return torch.cat([log_node_evidence(table, chunk).sum(dim=1) for chunk in chunks])[which]


def parent_set_probabilities(table: ScoreTable, orders: Tensor) -> Tensor:
    """`p(S | L, D)` for every node, (orders, nodes, sets); sums to one over sets."""
    return torch.softmax(log_parent_set_weights(table, orders), dim=2)


def expected_product(probabilities: Tensor, values: Tensor) -> Tensor:
    """Proposition 1: `E[prod_i Y_i(S_i) | L, D] = prod_i sum_S p(S | L, D) Y_i(S)`.

    Args:
        probabilities: (orders, nodes, sets) from `parent_set_probabilities`.
        values: Y, (nodes, sets), or (orders, nodes, sets) if it depends on the order. Finite also where a set is
            no candidate.

    Returns:
        (orders,)
    """
    return (probabilities * values).sum(dim=2).prod(dim=1)


def expected_sum(probabilities: Tensor, values: Tensor) -> Tensor:
    """Proposition 2: `E[sum_i Y_i(S_i) | L, D] = sum_i sum_S p(S | L, D) Y_i(S)`.

    Arguments and result as for `expected_product`. In the form of the paper both sides are multiplied by p(D | L).
    """
    return (probabilities * values).sum(dim=(1, 2))


def edge_probabilities(parent_sets: ParentSets, probabilities: Tensor) -> Tensor:
    """`P(j -> i)` from parent-set probabilities (..., nodes, sets): (..., nodes j, nodes i), row causes column."""
    membership = parent_sets.membership.to(probabilities)
    return (probabilities @ membership).mT


def orders_at_once(table: ScoreTable) -> int:
    """How many orders to treat at a time to bound the memory that their (orders, nodes, sets) tensors take."""
    return max(1, _ENTRIES_AT_ONCE // table.scores.numel())


def log_num_sets(parent_sets: ParentSets) -> Tensor:
    """(nodes,) float64, entry m the logarithm of the number of candidate parent sets among m predecessors."""
    counts = [num_sets(num_predecessors, parent_sets.max_size) for num_predecessors in range(parent_sets.num_nodes)]
    return torch.tensor([math.log(count) for count in counts], dtype=torch.float64)
