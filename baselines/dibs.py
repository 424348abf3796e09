"""DiBS with the scores of families: training of the particles, and the posterior that they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from baselines import dibs_graphs
from baselines.acyclic import is_acyclic
from baselines.svgd import svgd_direction
from bci.dataset import Bools, Floats
from bci.family_scores import FamilyScoreCache, family_keys
from bci.graphs import groups_of_equal
from bci.posterior import GraphPosterior, WeightedGraphs

_LOSS_WINDOW = 3  # steps
_NEGLIGIBLE = 1e-6  # weight of the least likely graphs, in all, that the posterior leaves out
_MOST_DRAWS = 100  # of graphs, until one is acyclic

FamilyScores = Callable[[Tensor, Tensor], Tensor]


class Trained(NamedTuple):
    """Particles (particles, 2, d, d), and the course of the training."""

    particles: Tensor
    losses: list[float]
    graphs_used: list[int]  # per particle and step, after those that were dropped


@dataclass(frozen=True, kw_only=True)
class Dibs:
    """The settings of `baselines.dibs_gp.DibsGP` that are not of the mechanisms."""

    num_particles: int
    num_graphs: int
    num_steps: int
    learning_rate: float
    alpha: float
    beta: float
    beta_schedule: str
    evaluation_beta: float
    gradient_clip: float
    max_mechanisms: int
    tolerance: float
    min_steps: int

    def fit(self, cache: FamilyScoreCache, num_nodes: int, generator: torch.Generator) -> GraphPosterior:
        """Train and sample the posterior; its diagnostics have `cyclic_share` and `cyclic_mass`, see `posterior`."""
        trained = self.train(cache.scores, num_nodes, generator)
        posterior = self.posterior(trained.particles, cache.scores, generator)
        diagnostics: dict[str, Any] = {
            "steps": len(trained.losses),
            "mechanisms_scored": len(cache),
            "least_graphs_per_step": min(trained.graphs_used),
            "losses": trained.losses,
        }
        return GraphPosterior(posterior.graphs, posterior.weights, diagnostics={**posterior.diagnostics, **diagnostics})

    def train(self, family_scores: FamilyScores, num_nodes: int, generator: torch.Generator) -> Trained:
        """Particles after at most `num_steps` steps of Adam along the direction of SVGD.

        Args:
            family_scores: from nodes (families,) and parents (families, d) to scores (families,).
            num_nodes: d.
            generator: of all random numbers.
        """
        particles = dibs_graphs.initial_particles(self.num_particles, num_nodes, generator)
        optimiser = torch.optim.Adam([particles], lr=self.learning_rate, maximize=True)
        losses: list[float] = []
        graphs_used: list[int] = []
        for step in tqdm(range(1, self.num_steps + 1), desc="DiBS", unit="step", leave=False, disable=None):
            beta = self.beta * step if self.beta_schedule == "step" else self.beta
            logits = dibs_graphs.edge_logits(particles, self.alpha)
            graphs = dibs_graphs.sample_graphs(logits, self.num_graphs, generator)
            graphs = graphs[:, num_to_drop(graphs, self.max_mechanisms) :]
            scores = graph_scores(graphs, family_scores)
            mean_cyclicity, cyclicity_gradient = dibs_graphs.expected_cyclicity(logits, self.num_graphs, generator)

            gradient = dibs_graphs.likelihood_gradient(graphs, scores, particles, self.alpha)
            gradient = gradient.clamp(-self.gradient_clip, self.gradient_clip)
            gradient += dibs_graphs.log_prior_gradient(particles, cyclicity_gradient, beta, self.alpha)
            log_joint = log_mean_exp(scores) + dibs_graphs.log_prior(particles, mean_cyclicity, beta)
            losses.append(-float(log_joint.mean()))
            graphs_used.append(graphs.shape[1])

            direction = svgd_direction(particles.flatten(1), gradient.flatten(1), float(num_nodes**2))
            particles.grad = direction.reshape(particles.shape)
            optimiser.step()
            if step > self.min_steps and self._has_settled(losses):
                break
        return Trained(particles, losses, graphs_used)

    def posterior(self, particles: Tensor, family_scores: FamilyScores, generator: torch.Generator) -> GraphPosterior:
        """Weighted DAGs: those sampled from every particle, weighted by the particle's prior and their likelihood.

        A particle weighs its prior times the mean likelihood of its graphs, where cyclic ones count with zero; so does
        a graph within it. The diagnostics tell the share of cyclic graphs among the samples, `cyclic_share`, and the
        weight that they would have had, `cyclic_mass`.

        Raises:
            ArithmeticError: no sampled graph is acyclic.
        """
        logits = dibs_graphs.edge_logits(particles, self.alpha)
        mean_cyclicity, _ = dibs_graphs.expected_cyclicity(logits, self.num_graphs, generator)
        prior = dibs_graphs.log_prior(particles, mean_cyclicity, self.evaluation_beta)
        for _ in range(_MOST_DRAWS):
            graphs = dibs_graphs.sample_graphs(logits, self.num_graphs, generator)
            acyclic = torch.from_numpy(is_acyclic(graphs.flatten(0, 1).numpy())).view(graphs.shape[:2])
            if acyclic.any():
                break
        else:
            raise ArithmeticError(
                "expected acyclic graphs among the samples, got none; set a higher beta, or beta_schedule=step"
            )
        log_weights = prior[:, None] + graph_scores(graphs, family_scores)
        every = log_weights.flatten().softmax(dim=0)
        kept, dags = log_weights[acyclic].softmax(dim=0).numpy(), graphs[acyclic].numpy()
        diagnostics = {
            "cyclic_share": float((~acyclic).double().mean()),
            "cyclic_mass": float(every[~acyclic.flatten()].sum()),
            "particle_weights": _per_particle(log_weights, acyclic),
        }
        return GraphPosterior(*_without_negligible(dags, kept), diagnostics=diagnostics)

    def _has_settled(self, losses: list[float]) -> bool:
        recent = losses[-_LOSS_WINDOW - 1 :]
        return len(recent) > _LOSS_WINDOW and abs(recent[-1] - recent[0]) / _LOSS_WINDOW < self.tolerance


def graph_scores(graphs: Tensor, family_scores: FamilyScores) -> Tensor:
    """Sums of the scores of the families, (particles, graphs), for graphs (particles, graphs, d, d) bool."""
    nodes, parents = _families(graphs)
    return family_scores(nodes, parents).reshape(graphs.shape[:3]).sum(dim=2)


def num_to_drop(graphs: Tensor, max_families: int) -> int:
    """How many first graphs of every particle to drop, so that few enough different families are left; one stays.

    Args:
        graphs: (particles, graphs, d, d) bool.
        max_families: bound on the number of different families.
    """
    num_particles, num_graphs, d, _ = graphs.shape
    _, group = np.unique(family_keys(*_families(graphs)), return_inverse=True)
    number = np.broadcast_to(np.arange(num_graphs)[None, :, None], (num_particles, num_graphs, d))
    last = np.zeros(group.max() + 1, dtype=np.int64)  # graph that has the family
    np.maximum.at(last, group, number.ravel())
    left = np.bincount(last, minlength=num_graphs)[::-1].cumsum()[::-1]  # families, by graphs dropped
    return int(np.argmax(left <= max_families)) if left[-1] <= max_families else num_graphs - 1


def log_mean_exp(values: Tensor) -> Tensor:
    """Over the last dimension."""
    return values.logsumexp(dim=-1) - math.log(values.shape[-1])


def _families(graphs: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and parents, (particles * graphs * d,) and (particles * graphs * d, d)."""
    d = graphs.shape[-1]
    parents = graphs.mT.reshape(-1, d)
    return torch.arange(d).repeat(len(parents) // d), parents


def _per_particle(log_weights: Tensor, acyclic: Tensor) -> list[float]:
    """What every particle's DAGs weigh together."""
    return log_weights.masked_fill(~acyclic, -torch.inf).logsumexp(dim=1).softmax(dim=0).tolist()


def _without_negligible(graphs: Bools, weights: Floats) -> WeightedGraphs:
    """Different graphs with their total weights, the most likely first, down to a negligible rest."""
    first, group = groups_of_equal(graphs)
    total = np.bincount(group, weights)
    order = np.argsort(-total, kind="stable")
    total = total[order]
    count = int(np.searchsorted(total.cumsum(), 1 - _NEGLIGIBLE)) + 1
    return WeightedGraphs(graphs[first[order[:count]]], total[:count] / total[:count].sum())
