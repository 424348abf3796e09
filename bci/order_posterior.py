"""The posterior over graphs given parent-set scores and a distribution over causal orders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bci.dataset import Floats
from bci.marginalisation import (
    edge_probabilities,
    log_order_evidence,
    log_parent_set_weights,
    orders_at_once,
    parent_set_probabilities,
)
from bci.orders import ExactOrders, OrderModel
from bci.orders.sequential import gumbel
from bci.orders.training import OrderWeights, log_order_weights
from bci.posterior import GraphKind, Posterior, WeightedGraphs
from bci.randomness import torch_generator
from bci.scores import ScoreTable


class WeightedOrders(NamedTuple):
    """Orders (n, nodes) with weights (n,) that sum to one."""

    orders: Tensor
    weights: Tensor


class WeightedParentSets(NamedTuple):
    """For each of n graphs the number of every node's parent set, (n, nodes), with weights (n,) summing to one."""

    sets: Tensor
    weights: Tensor


@dataclass(frozen=True, eq=False)
class OrderPosterior(Posterior):
    """Graphs whose parent sets are marginalised exactly given orders, and the orders exactly or by sampling.

    Args:
        table: scores of all parent sets.
        order_model: distribution over orders.
        marginal_orders: the weighted orders that stand for the order posterior in `parent_set_probabilities`; None
            for exact orders, which need none.
        order_weights: how sampled orders are weighted; not used for exact orders.
        num_graphs_per_order: graphs drawn from every order in `sample_graphs`.
    """

    table: ScoreTable
    order_model: OrderModel
    marginal_orders: WeightedOrders | None
    order_weights: OrderWeights = "paper"
    num_graphs_per_order: int = 10
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    graph_kind: GraphKind = "dag"

    @cached_property
    def parent_set_probabilities(self) -> Tensor:
        """`p(S is the parent set of i | D)`, (nodes, sets); zero where i is in S."""
        if isinstance(self.order_model, ExactOrders):
            return self.order_model.parent_set_probabilities
        assert self.marginal_orders is not None
        total = torch.zeros_like(self.table.scores)
        chunks = (torch.split(rows, orders_at_once(self.table)) for rows in self.marginal_orders)
        for orders, weights in zip(*chunks, strict=True):
            total += torch.einsum("o,ois->is", weights, parent_set_probabilities(self.table, orders))
        return total

    @property
    def edge_probabilities(self) -> Floats:
        """(d, d), row causes column; exact given the orders, and exact where the orders are."""
        probabilities = edge_probabilities(self.table.parent_sets, self.parent_set_probabilities)
        clipped: Floats = probabilities.clamp(0, 1).cpu().numpy()  # sums of probabilities exceed one by rounding
        return clipped

    @property
    def log_evidence(self) -> float | None:
        """`log p(D, psi*)` under a uniform prior over orders; None where orders are not summed exactly."""
        return self.order_model.log_evidence if isinstance(self.order_model, ExactOrders) else None

    def sample_orders(self, n: int, rng: np.random.Generator) -> WeightedOrders:
        """`n` fresh orders with weights."""
        return sample_weighted_orders(self.table, self.order_model, self.order_weights, n, rng)

    def sample_parent_sets(self, n: int, rng: np.random.Generator) -> WeightedParentSets:
        """Parent sets of `n` graphs, `num_graphs_per_order` from each order; all graphs of an order weigh the same."""
        per_order = self.num_graphs_per_order
        orders, weights = self.sample_orders(math.ceil(n / per_order), rng)
        generator = torch_generator(rng, orders.device)
        drawn = []
        for chunk in torch.split(orders, orders_at_once(self.table)):
            log_weights = log_parent_set_weights(self.table, chunk)
            draws = [
                (log_weights + gumbel(tuple(log_weights.shape), generator)).argmax(dim=2) for _ in range(per_order)
            ]
            drawn.append(torch.stack(draws, dim=1).flatten(0, 1))
        weights = weights.repeat_interleave(per_order)[:n]
        return WeightedParentSets(torch.cat(drawn)[:n], weights / weights.sum())

    def sample_graphs(self, n: int, rng: np.random.Generator) -> WeightedGraphs:
        """`n` graphs drawn as in `sample_parent_sets`."""
        sets, weights = self.sample_parent_sets(n, rng)
        graphs = self.table.parent_sets.membership.to(sets.device)[sets].mT
        return WeightedGraphs(graphs.cpu().numpy(), weights.cpu().numpy())


def sample_weighted_orders(
    table: ScoreTable, model: OrderModel, kind: OrderWeights, n: int, rng: np.random.Generator
) -> WeightedOrders:
    """`n` orders from `model`, weighted towards the posterior; equally if the model is exact."""
    orders = model.sample(n, rng)
    if isinstance(model, ExactOrders):
        return WeightedOrders(orders, torch.full((n,), 1 / n, dtype=torch.float64, device=orders.device))
    with torch.no_grad():
        log_weights = log_order_weights(log_order_evidence(table, orders), model.log_prob(orders), kind)
    return WeightedOrders(orders, torch.softmax(log_weights, dim=0))
