"""The posterior over graphs given parent-set scores and a distribution over causal orders."""

from __future__ import annotations

import math
from abc import abstractmethod
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


class OrderPosterior(Posterior):
    """A posterior whose parent sets are marginalised exactly given causal orders."""

    table: ScoreTable
    graph_kind: GraphKind = "dag"

    @property
    @abstractmethod
    def parent_set_probabilities(self) -> Tensor:
        """`p(S is the parent set of i | D)`, (nodes, sets); zero where i is in S."""

    @abstractmethod
    def _orders_of_graphs(self, n: int, rng: np.random.Generator) -> WeightedOrders:
        """The orders (n, nodes) that `n` graphs are drawn from, and the weights of the graphs."""

    @property
    def edge_probabilities(self) -> Floats:
        """(d, d), row causes column; parent sets are summed exactly."""
        probabilities = edge_probabilities(self.table.parent_sets, self.parent_set_probabilities)
        clipped: Floats = probabilities.clamp(0, 1).cpu().numpy()  # sums of probabilities exceed one by rounding
        return clipped

    def sample_parent_sets(self, n: int, rng: np.random.Generator) -> WeightedParentSets:
        """Parent sets of `n` graphs, drawn independently for every node given an order."""
        orders, weights = self._orders_of_graphs(n, rng)
        generator = torch_generator(rng, orders.device)
        drawn = []
        for chunk in torch.split(orders, orders_at_once(self.table)):
            log_weights = log_parent_set_weights(self.table, chunk)
            drawn.append((log_weights + gumbel(tuple(log_weights.shape), generator)).argmax(dim=2))
        return WeightedParentSets(torch.cat(drawn), weights)

    def sample_graphs(self, n: int, rng: np.random.Generator) -> WeightedGraphs:
        """`n` graphs drawn as in `sample_parent_sets`."""
        sets, weights = self.sample_parent_sets(n, rng)
        graphs = self.table.parent_sets.membership.to(sets.device)[sets].mT
        return WeightedGraphs(graphs.cpu().numpy(), weights.cpu().numpy())


@dataclass(frozen=True, eq=False)
class ExactOrderPosterior(OrderPosterior):
    """All causal orders are summed; sampled graphs are independent and weigh the same.

    Args:
        table: scores of all parent sets.
        order_model: the exact order posterior of that table.
    """

    table: ScoreTable
    order_model: ExactOrders
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parent_set_probabilities(self) -> Tensor:
        """As `OrderPosterior.parent_set_probabilities`, exactly."""
        return self.order_model.parent_set_probabilities

    @property
    def log_evidence(self) -> float:
        """`log p(D, psi*)` under a uniform prior over orders."""
        return self.order_model.log_evidence

    def _orders_of_graphs(self, n: int, rng: np.random.Generator) -> WeightedOrders:
        orders = self.order_model.sample(n, rng)
        return WeightedOrders(orders, torch.full((n,), 1 / n, dtype=torch.float64, device=orders.device))


@dataclass(frozen=True, eq=False)
class SampledOrderPosterior(OrderPosterior):
    """Weighted orders stand for the order posterior; edge probabilities and graphs come from the same orders.

    Args:
        table: scores of all parent sets.
        order_model: what the orders were drawn from.
        orders: weighted orders, from `sample_weighted_orders`.
        num_graphs_per_order: graphs drawn from an order, as far as the orders suffice; more are drawn from each where
            more graphs are asked for.
    """

    table: ScoreTable
    order_model: OrderModel
    orders: WeightedOrders
    num_graphs_per_order: int = 10
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def parent_set_probabilities(self) -> Tensor:
        """As `OrderPosterior.parent_set_probabilities`, averaged over the weighted orders."""
        total = torch.zeros_like(self.table.scores)
        chunks = (torch.split(rows, orders_at_once(self.table)) for rows in self.orders)
        for orders, weights in zip(*chunks, strict=True):
            total += torch.einsum("o,ois->is", weights, parent_set_probabilities(self.table, orders))
        return total

    def _orders_of_graphs(self, n: int, rng: np.random.Generator) -> WeightedOrders:
        orders, weights = self.orders
        num_needed = math.ceil(n / self.num_graphs_per_order)
        if num_needed < len(orders):
            orders, weights = _resample(orders, weights, num_needed, rng)
        which = torch.arange(n, device=orders.device) % len(orders)
        shared = weights[which] / torch.bincount(which)[which]
        return WeightedOrders(orders[which], shared / shared.sum())


def exact_posterior(table: ScoreTable) -> ExactOrderPosterior:
    """The posterior given scores, with all orders summed exactly."""
    model = ExactOrders(table)
    return ExactOrderPosterior(table, model, {"log_evidence": model.log_evidence})


def sample_weighted_orders(
    table: ScoreTable, model: OrderModel, kind: OrderWeights, n: int, rng: np.random.Generator
) -> WeightedOrders:
    """`n` orders from `model`, weighted towards the posterior."""
    orders = model.sample(n, rng)
    with torch.no_grad():
        log_weights = log_order_weights(log_order_evidence(table, orders), model.log_prob(orders), kind)
    return WeightedOrders(orders, torch.softmax(log_weights, dim=0))


def _resample(orders: Tensor, weights: Tensor, n: int, rng: np.random.Generator) -> WeightedOrders:
    """`n` orders of equal weight, each as often as its weight says but for rounding (systematic resampling)."""
    places = (torch.arange(n, dtype=weights.dtype, device=weights.device) + float(rng.random())) / n
    which = torch.searchsorted(weights.cumsum(dim=0), places).clamp_max(len(orders) - 1)
    return WeightedOrders(orders[which], torch.full_like(places, 1 / n))
