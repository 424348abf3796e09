"""DDS: variational inference over DAGs by differentiable sampling of them (VI-DP-DAG)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from baselines.acyclic import posterior_of_samples
from baselines.dag_sampler import DAGSampler, OrderType
from baselines.independent_edges import IndependentEdges
from baselines.node_networks import NodeNetworks
from baselines.packaged import PackagedMethod
from bci.dataset import Dataset, Floats
from bci.errors import InvalidInput
from bci.posterior import GraphPosterior, Posterior
from bci.settings import check_choice, check_count, check_number

Regulariser = Literal["code", "bernoulli_kl"]
EdgeProbabilities = Literal["deterministic_order", "samples"]


@dataclass(frozen=True, kw_only=True)
class DDS(PackagedMethod):
    """A distribution over DAGs, learnt with one network per node that predicts it from its parents in a sampled DAG.

    Charpentier, Kibler & Guennemann (2022), "Differentiable DAG sampling". The loss is the mean squared error over a
    minibatch, with one DAG, and the nodes, plus `regularisation` times a regulariser. With `code`, what the authors'
    program computes, the graphs are nearly complete: its gradient is `-prior_p / d^2` for every edge logit E. The paper
    describes `bernoulli_kl`, which is sparse.

    Args:
        hidden_dims: widths of the hidden layers of a network.
        temperature: of permutations and edges.
        hard: train with DAGs of zeros and ones and straight-through gradients; else with soft ones.
        order_type: how an order is drawn, "top_k" (sorted scores) or "sinkhorn".
        max_epochs: most passes over the training rows.
        validate_every: epochs between two validations. The parameters with the lowest validation loss are kept.
        patience: stop when more validations are done and the one so many ago is no worse than all since.
        batch_size: rows of a minibatch.
        learning_rate, dag_learning_rate: of Adam, for the networks and for the distribution over DAGs.
        validation_fraction: share of the rows that are held out.
        regularisation: weight of the regulariser.
        regulariser: "code", mean of `prior_p (log prior_p - E)`, or "bernoulli_kl", mean divergence of
            Bernoulli(sigmoid(E)) from Bernoulli(prior_p).
        prior_p: prior probability of an edge.
        edge_probabilities: "deterministic_order", independent edges along the order without noise, as the authors
            report it, or "samples", DAGs drawn with their orders.
        num_samples: DAGs drawn for "samples".
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    hidden_dims: Sequence[int] = (32, 32, 32)
    temperature: float = 1.0
    hard: bool = True
    order_type: OrderType = "top_k"
    max_epochs: int = 500
    validate_every: int = 2
    patience: int = 150
    batch_size: int = 16
    learning_rate: float = 1e-3
    dag_learning_rate: float = 1e-2
    validation_fraction: float = 0.2
    regularisation: float = 0.1
    regulariser: Regulariser = "code"
    prior_p: float = 1e-6
    edge_probabilities: EdgeProbabilities = "deterministic_order"
    num_samples: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.hidden_dims, str) or not isinstance(self.hidden_dims, Sequence):
            raise InvalidInput(f"hidden_dims: expected a list of widths, got {self.hidden_dims!r}")
        for width in self.hidden_dims:
            check_count("hidden_dims", width, 1)
        for key in ("max_epochs", "validate_every", "patience", "batch_size", "num_samples"):
            check_count(key, getattr(self, key), 1)
        for key in ("temperature", "learning_rate", "dag_learning_rate", "validation_fraction", "prior_p"):
            check_number(key, getattr(self, key), positive=True)
        for key in ("validation_fraction", "prior_p"):
            if getattr(self, key) >= 1:
                raise InvalidInput(f"{key}: expected a number between 0 and 1, got {getattr(self, key)!r}")
        check_number("regularisation", self.regularisation, minimum=0)
        check_choice("hard", self.hard, [True, False])
        check_choice("order_type", self.order_type, get_args(OrderType))
        check_choice("regulariser", self.regulariser, get_args(Regulariser))
        check_choice("edge_probabilities", self.edge_probabilities, get_args(EdgeProbabilities))

    @property
    def packages(self) -> tuple[str, ...]:
        return ("torch",)

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "hidden_dims": list(self.hidden_dims)}

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> Posterior:
        found = self.find_graphs(dataset, rng)
        if self.edge_probabilities == "samples":
            return found
        diagnostics = dict(found.diagnostics)
        probabilities = np.reshape(diagnostics.pop("edge_probabilities"), found.graphs.shape[1:])
        return IndependentEdges(probabilities, diagnostics=diagnostics)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> GraphPosterior:
    """Run in the process of the fit; diagnostics hold the probabilities of "deterministic_order", row by row."""
    sampler, diagnostics, generator = _train(observations, settings, seed)
    if settings["edge_probabilities"] == "samples":
        graphs = sampler.sample_hard(settings["num_samples"], generator) > 0.5
        return posterior_of_samples(graphs.numpy(), diagnostics)
    probabilities = sampler.edge_probabilities().double().numpy()
    return posterior_of_samples(probabilities[None] > 0.5, {**diagnostics, "edge_probabilities": probabilities.ravel()})


def _train(
    observations: Floats, settings: Mapping[str, Any], seed: int
) -> tuple[DAGSampler, dict[str, Any], torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.from_numpy(observations).float()
    rows = rows[torch.randperm(len(rows), generator=generator)]
    held_out = min(max(1, round(settings["validation_fraction"] * len(rows))), len(rows) - 1)
    validation, training = rows[:held_out], rows[held_out:]

    num_nodes = rows.shape[1]
    networks = NodeNetworks(num_nodes, settings["hidden_dims"], generator)
    sampler = DAGSampler(
        num_nodes, **{key: settings[key] for key in ("temperature", "hard", "order_type")}, generator=generator
    )
    optimisers = [
        torch.optim.Adam(networks.parameters, lr=settings["learning_rate"]),
        torch.optim.Adam(sampler.parameters, lr=settings["dag_learning_rate"]),
    ]

    def loss_of(batch: Tensor, dag: Tensor) -> Tensor:
        penalty = _penalty(sampler.edge_logits, settings["regulariser"], settings["prior_p"])
        loss: Tensor = (networks.predict(batch, dag) - batch).square().mean() + settings["regularisation"] * penalty
        return loss

    losses: list[float] = []
    best = [parameter.detach().clone() for parameter in sampler.parameters]
    patience = settings["patience"]
    for epoch in range(settings["max_epochs"]):
        shuffled = training[torch.randperm(len(training), generator=generator)]
        for batch in shuffled.split(settings["batch_size"]):  # type: ignore[no-untyped-call]
            loss = loss_of(batch, sampler.sample(1, generator)[0])
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for optimiser in optimisers:
                optimiser.step()
        if epoch % settings["validate_every"]:
            continue
        with torch.no_grad():
            dag = (sampler.edge_probabilities() > 0.5).float()
            losses.append(loss_of(validation, dag).item())
        if not math.isfinite(losses[-1]):
            raise FloatingPointError("expected a finite loss, but the fit diverged; set a lower learning_rate")
        if losses[-1] < min(losses[:-1], default=math.inf):
            best = [parameter.detach().clone() for parameter in sampler.parameters]
        if len(losses) - 1 > patience and losses[-patience] <= min(losses[-patience:]):
            break
    with torch.no_grad():
        for parameter, value in zip(sampler.parameters, best, strict=True):
            parameter.copy_(value)
    return sampler, {"epochs": epoch + 1, "validation_loss": losses}, generator


def _penalty(edge_logits: Tensor, regulariser: Regulariser, prior_p: float) -> Tensor:
    """Mean over the (d, d) entries; those on the diagonal, where no edge is, add a constant."""
    if regulariser == "code":
        return (prior_p * (math.log(prior_p) - edge_logits)).mean()
    present, absent = edge_logits.sigmoid(), (-edge_logits).sigmoid()
    log_ratios = (
        torch.nn.functional.logsigmoid(edge_logits) - math.log(prior_p),
        torch.nn.functional.logsigmoid(-edge_logits) - math.log1p(-prior_p),
    )
    return (present * log_ratios[0] + absent * log_ratios[1]).mean()
