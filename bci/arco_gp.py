"""ARCO-GP: parent-set scores of Gaussian processes, marginalised over learnt or exact causal orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.marginalisation import log_order_evidence
from bci.method import Method
from bci.order_posterior import OrderPosterior, SampledOrderPosterior, exact_posterior, sample_weighted_orders
from bci.orders import (
    AutoregressiveOrders,
    PlackettLuceOrders,
    TrainingSettings,
    train_orders,
)
from bci.orders.exact import check_exact_orders_fit
from bci.orders.training import OrderWeights, effective_sample_size
from bci.parent_sets import ParentSets
from bci.predictive import scored_gp_mechanisms
from bci.scores import LikelihoodWeight, ScoreTable, score_parent_sets
from bci.settings import check_choice, check_count, check_device, check_number

OrderModelName = Literal["mlp", "plackett_luce", "exact"]


@dataclass(frozen=True, kw_only=True)
class ArcoGP(Method):
    """Bayesian causal discovery with Gaussian-process mechanisms; Toth et al. (2025), defaults as in the paper.

    Args:
        max_parents: K, the most parents a node may have.
        order_model: "mlp" (ARCO), "plackett_luce", or "exact" (sums over all orders).
        order_weights: weights of sampled orders, "paper" or "importance"; see `bci.orders.training`.
        likelihood_weight: "full" or "per_sample"; see `bci.scores`.
        num_orders: weighted orders that stand for the order posterior, unless the orders are exact.
        num_graphs_per_order: graphs drawn from every order when graphs are sampled. Causal queries average over
            num_orders * num_graphs_per_order graphs, also if the orders are exact.
        steps, orders_per_step, learning_rate, prior_std, baseline_decay, patience, tolerance: training of the order
            model; see `bci.orders.training.TrainingSettings`.
        hidden: width of the hidden layer of "mlp".
        device: torch device of scores and orders.

    Raises:
        InvalidInput: a setting out of range.
    """

    uses_interventional_data: ClassVar[bool] = True
    answers_queries: ClassVar[bool] = True

    max_parents: int = 2
    order_model: OrderModelName = "mlp"
    order_weights: OrderWeights = "paper"
    likelihood_weight: LikelihoodWeight = "full"
    num_orders: int = 100
    num_graphs_per_order: int = 10
    steps: int = 400
    orders_per_step: int = 100
    learning_rate: float = 0.01
    prior_std: float = 10.0
    baseline_decay: float = 0.9
    patience: int = 100
    tolerance: float = 1e-3
    hidden: int = 30
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_choice("order_model", self.order_model, get_args(OrderModelName))
        check_choice("order_weights", self.order_weights, get_args(OrderWeights))
        check_choice("likelihood_weight", self.likelihood_weight, get_args(LikelihoodWeight))
        for key, minimum in _COUNTS.items():
            check_count(key, getattr(self, key), minimum)
        for key in ("learning_rate", "prior_std", "tolerance"):
            check_number(key, getattr(self, key), positive=True)
        check_number("baseline_decay", self.baseline_decay)
        if not 0 <= self.baseline_decay < 1:
            raise InvalidInput(f"baseline_decay: expected at least 0 and below 1, got {self.baseline_decay}")
        check_device("device", self.device)

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GenerativePosterior:
        ParentSets(dataset.num_nodes, self.max_parents)  # refuses what cannot be, before the long computation
        if self.order_model == "exact":
            check_exact_orders_fit(dataset.num_nodes)
        table = score_parent_sets(
            dataset, self.max_parents, likelihood_weight=self.likelihood_weight, device=self.device
        )
        structure = self.posterior(table, rng)
        graphs = structure.sample_graphs(self.num_orders * self.num_graphs_per_order, rng)
        mechanisms = scored_gp_mechanisms(dataset, graphs.graphs, table)
        return GenerativePosterior.of(structure, graphs, mechanisms, dataset, rng)

    def posterior(self, table: ScoreTable, rng: np.random.Generator) -> OrderPosterior:
        """The posterior over graphs: causal orders, given the scores of all parent sets."""
        if self.order_model == "exact":
            return exact_posterior(table)
        num_nodes = table.parent_sets.num_nodes
        model: AutoregressiveOrders | PlackettLuceOrders
        if self.order_model == "mlp":
            model = AutoregressiveOrders(num_nodes, rng, hidden=self.hidden, device=self.device)
        else:
            model = PlackettLuceOrders(num_nodes, device=self.device)
        settings = TrainingSettings(
            steps=self.steps,
            orders_per_step=self.orders_per_step,
            learning_rate=self.learning_rate,
            prior_std=self.prior_std,
            baseline_decay=self.baseline_decay,
            order_weights=self.order_weights,
            patience=self.patience,
            tolerance=self.tolerance,
        )
        diagnostics: dict[str, Any] = train_orders(
            model, lambda orders: log_order_evidence(table, orders), settings, rng
        )
        orders = sample_weighted_orders(table, model, self.order_weights, self.num_orders, rng)
        diagnostics["effective_sample_size"] = effective_sample_size(orders.weights)
        return SampledOrderPosterior(table, model, orders, self.num_graphs_per_order, diagnostics)


@dataclass(frozen=True, kw_only=True)
class ExactGP(ArcoGP):
    """The model of ARCO-GP with all causal orders summed exactly instead of learnt; settings of learning do nothing."""

    order_model: OrderModelName = "exact"


_COUNTS = {
    "max_parents": 0,
    "num_orders": 1,
    "num_graphs_per_order": 1,
    "steps": 0,
    "orders_per_step": 2,
    "patience": 0,
    "hidden": 1,
}
