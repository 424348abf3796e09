"""Fit an order model to the evidence of orders by score-function gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bci.counting import counted
from bci.orders.sequential import TrainableOrders

OrderWeights = Literal["paper", "importance"]


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How to train; defaults are the paper's (appendix on experimental details).

    Args:
        steps: at most so many gradient steps.
        orders_per_step: orders sampled for each.
        learning_rate: of Adam.
        prior_std: standard deviation of the Gaussian prior on every parameter.
        baseline_decay: of the exponential moving average of the weights that is the baseline.
        order_weights: see `log_order_weights`.
        patience: stop when the smoothed loss has not improved by `tolerance` for so many steps; 0 never stops early.
        tolerance: in nats.
    """

    steps: int = 400
    orders_per_step: int = 100
    learning_rate: float = 0.01
    prior_std: float = 10.0
    baseline_decay: float = 0.9
    order_weights: OrderWeights = "paper"
    patience: int = 100
    tolerance: float = 1e-3


def log_order_weights(log_evidence: Tensor, log_prob: Tensor, kind: OrderWeights) -> Tensor:
    """Unnormalised log weights (n,) of orders sampled from a model.

    "paper" takes `p(D | L)`, so that the target is `p(L | theta) p(D | L)`. "importance" divides by `p(L | theta)`:
    the target is the posterior under a uniform prior over orders, whatever the model.
    """
    return log_evidence if kind == "paper" else log_evidence - log_prob


def effective_sample_size(weights: Tensor) -> float:
    """`1 / sum w^2` of weights (n,) that sum to one: n for equal ones, 1 if one has it all."""
    return float(1 / weights.square().sum())


def train_orders(
    model: TrainableOrders,
    log_evidence: Callable[[Tensor], Tensor],
    settings: TrainingSettings,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Maximise `log E[p(D | L)] + log p(theta)` over the model's parameters, in place.

    The gradient is estimated as `sum_L (w_L - b) grad log p(L | theta)` with self-normalised weights w and baseline b
    (Toth et al. 2025, eq. for the gradient in theta). With "importance" weights it leads the model towards the
    posterior under a uniform prior over orders instead.

    Args:
        log_evidence: (n, d) orders -> (n,) log p(D | L).

    Returns:
        Diagnostics: `losses`, minus the log of the estimated evidence at each step; `effective_sample_sizes` of the
        weights at each step; `steps` taken.
    """
    optimiser = torch.optim.Adam(model.parameters, lr=settings.learning_rate)
    losses: list[float] = []
    sizes: list[float] = []
    baseline, smoothed, best, best_step = 0.0, 0.0, np.inf, 0
    for step in counted(range(settings.steps), "orders", "step"):
        orders = model.sample(settings.orders_per_step, rng)
        log_prob = model.log_prob(orders)
        evidence = log_evidence(orders)
        log_weights = log_order_weights(evidence, log_prob.detach(), settings.order_weights)
        weights = torch.softmax(log_weights, dim=0)
        decay = settings.baseline_decay
        baseline = decay * baseline + (1 - decay) / len(orders)  # the mean of weights that sum to one
        penalty = sum((parameter.square().sum() for parameter in model.parameters), start=log_prob.new_zeros(()))
        loss = -((weights - baseline) * log_prob).sum() + penalty / (2 * settings.prior_std**2)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

        losses.append(-_log_mean_evidence(log_weights, orders.shape[1], settings.order_weights))
        sizes.append(effective_sample_size(weights))
        smoothed = losses[-1] if step == 0 else decay * smoothed + (1 - decay) * losses[-1]
        if smoothed < best - settings.tolerance:
            best, best_step = smoothed, step
        elif settings.patience and step - best_step >= settings.patience:
            break
    return {"losses": losses, "effective_sample_sizes": sizes, "steps": len(losses)}


def _log_mean_evidence(log_weights: Tensor, num_nodes: int, kind: OrderWeights) -> float:
    """Estimate of `log E[p(D | L)]`, over the model for "paper" and over uniform orders for "importance" weights."""
    log_mean = float(torch.logsumexp(log_weights, dim=0)) - math.log(len(log_weights))
    return log_mean if kind == "paper" else log_mean - math.lgamma(num_nodes + 1)
