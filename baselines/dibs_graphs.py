"""Graphs of DiBS: edge probabilities of latent particles, graphs sampled from them, and how cyclic they are.

Lorch, Rothfuss, Schoelkopf & Krause (2021), "DiBS: differentiable Bayesian structure learning". A particle holds two
vectors u_i, v_i per node; `sigmoid(alpha u_i . v_j)` is the probability of the edge i -> j. Row causes column.
"""

from __future__ import annotations

import torch
from torch import Tensor

_SHIFT = 1.0  # of U down and V up, so that first graphs are sparse


def initial_particles(num_particles: int, num_nodes: int, generator: torch.Generator) -> Tensor:
    """Particles (particles, 2, d, d), U and V, of standard normal entries with U shifted by -1 and V by +1."""
    particles = torch.randn(num_particles, 2, num_nodes, num_nodes, generator=generator, dtype=torch.float64)
    particles[:, 0] -= _SHIFT
    particles[:, 1] += _SHIFT
    return particles


def edge_logits(particles: Tensor, alpha: float) -> Tensor:
    """`alpha u_i . v_j`, (particles, d, d); -inf on the diagonal."""
    logits = alpha * (particles[:, 0] @ particles[:, 1].mT)
    logits.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
    return logits


def through_logits(particles: Tensor, gradient: Tensor, alpha: float) -> Tensor:
    """Gradients (particles, 2, d, d) in particles, from those in their logits (particles, d, d), zero on diagonals."""
    return alpha * torch.stack([gradient @ particles[:, 1], gradient.mT @ particles[:, 0]], dim=1)


def sample_graphs(logits: Tensor, num_graphs: int, generator: torch.Generator) -> Tensor:
    """Graphs (particles, graphs, d, d) bool with independent edges."""
    probabilities = logits.sigmoid()[:, None].expand(-1, num_graphs, -1, -1)
    return torch.rand(probabilities.shape, generator=generator, dtype=logits.dtype) < probabilities


def relaxed_graphs(logits: Tensor, num_graphs: int, generator: torch.Generator) -> Tensor:
    """`sigmoid(logits + logistic noise)`, (particles, graphs, d, d): graphs that have derivatives in the logits.

    The binary concrete distribution at temperature 1; Maddison, Mnih & Teh (2017), "The concrete distribution".
    """
    num_particles, d, _ = logits.shape
    uniform = torch.rand(num_particles, num_graphs, d, d, generator=generator, dtype=logits.dtype)
    return (logits[:, None] + torch.logit(uniform, eps=torch.finfo(logits.dtype).tiny)).sigmoid()


def cyclicity(graphs: Tensor) -> tuple[Tensor, Tensor]:
    """`h(G) = tr[(I + G/d)^d] - d`, zero for DAGs alone, and its gradient `((I + G/d)^(d-1))^T`.

    Yu, Chen, Gao & Yu (2019), "DAG-GNN: DAG structure learning with graph neural networks", eq. 14.

    Args:
        graphs: (..., d, d), entries from 0 to 1.

    Returns:
        (...) and (..., d, d)
    """
    d = graphs.shape[-1]
    walks = torch.eye(d, dtype=graphs.dtype) + graphs / d
    power = torch.linalg.matrix_power(walks, d - 1)
    closed = (power * walks.mT).sum(dim=(-2, -1))
    return closed - d, power.mT


def expected_cyclicity(logits: Tensor, num_graphs: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The mean of `cyclicity` over relaxed graphs, (particles,), and its gradient in the logits, (particles, d, d)."""
    graphs = relaxed_graphs(logits, num_graphs, generator)
    values, gradients = cyclicity(graphs)
    return values.mean(dim=1), (gradients * graphs * (1 - graphs)).mean(dim=1)


def log_prior(particles: Tensor, mean_cyclicity: Tensor, beta: float) -> Tensor:
    """`mean over entries of log N(z; 0, 1) - beta E[h]`, (particles,), up to a constant."""
    return -particles.square().mean(dim=(1, 2, 3)) / 2 - beta * mean_cyclicity


def log_prior_gradient(particles: Tensor, cyclicity_gradient: Tensor, beta: float, alpha: float) -> Tensor:
    """The gradient of `log_prior` in the particles, from that of the mean cyclicity in the logits."""
    normal = -particles / particles[0].numel()
    return normal - beta * through_logits(particles, cyclicity_gradient, alpha)


def likelihood_gradient(graphs: Tensor, log_likelihoods: Tensor, particles: Tensor, alpha: float) -> Tensor:
    """Score-function estimate of the gradient of `log E[p(D | G)]` in the particles, (particles, 2, d, d).

    `sum_k (w_k - 1/n) grad log p(G_k | Z)` over n graphs, w the softmax of their log likelihoods; in the logits
    grad log p(G | Z) is G minus the edge probabilities, which cancel. Lorch et al. (2021), section 4.3.

    Args:
        graphs: (particles, graphs, d, d) bool.
        log_likelihoods: (particles, graphs).
    """
    advantage = log_likelihoods.softmax(dim=1) - 1 / graphs.shape[1]
    in_logits = torch.einsum("pg,pgij->pij", advantage, graphs.to(advantage.dtype))
    return through_logits(particles, in_logits, alpha)
