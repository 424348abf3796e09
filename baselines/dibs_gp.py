"""DiBS-GP: latent particles for edge probabilities by Stein variational gradient descent, GPs for mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from baselines.packaged import PackagedMethod
from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset, Floats, Scaler
from bci.posterior import GraphPosterior
from bci.predictive import fit_gp_mechanisms
from bci.scores import LikelihoodWeight
from bci.settings import check_choice, check_count, check_number

BetaSchedule = Literal["step", "constant"]
Search = Literal["thorough", "plain"]


@dataclass(frozen=True, kw_only=True)
class DibsGP(PackagedMethod):
    """DiBS with the marginal likelihoods of Gaussian-process mechanisms, for parent sets of any size.

    Lorch, Rothfuss, Schoelkopf & Krause (2021), "DiBS: differentiable Bayesian structure learning"; with Gaussian
    processes Toth et al. (2022), "Active Bayesian causal inference", and Toth et al. (2025), whose settings these are.
    Mechanisms, their priors and MAP-II hyper-parameters are those of ARCO-GP.

    Args:
        num_particles: latent particles.
        num_graphs: graphs per particle and step, for the likelihood and for cycles alike, and in the posterior.
        num_steps: at most.
        learning_rate: of Adam.
        alpha: edge i -> j has the probability sigmoid(alpha u_i . v_j).
        beta: of the penalty on cycles, per step or constant.
        beta_schedule: "step" multiplies beta by the number of the step, as the published code does; "constant" leaves
            it as it is, as the paper says.
        evaluation_beta: of the penalty in the weights of the particles.
        gradient_clip: bound on every entry of the likelihood's gradient.
        max_mechanisms: at most so many different (node, parents) a step; graphs are dropped until it holds.
        tolerance: stop when the loss, a mean over three steps, moves less.
        min_steps: before that is looked at.
        likelihood_weight: "full" or "per_sample"; see `bci.scores`.
        map_search: "plain" or "thorough" hyper-parameters; see `bci.family_scores`.
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    answers_queries: ClassVar[bool] = True

    num_particles: int = 10
    num_graphs: int = 100
    num_steps: int = 500
    learning_rate: float = 0.1
    alpha: float = 1.0
    beta: float = 1.0
    beta_schedule: BetaSchedule = "step"
    evaluation_beta: float = 100.0
    gradient_clip: float = 1.0
    max_mechanisms: int = 3000
    tolerance: float = 1e-3
    min_steps: int = 50
    likelihood_weight: LikelihoodWeight = "full"
    map_search: Search = "plain"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("num_particles", "num_steps", "max_mechanisms"):
            check_count(key, getattr(self, key), 1)
        check_count("num_graphs", self.num_graphs, 2)
        check_count("min_steps", self.min_steps, 0)
        for key in ("learning_rate", "alpha", "gradient_clip"):
            check_number(key, getattr(self, key), positive=True)
        for key in ("beta", "evaluation_beta", "tolerance"):
            check_number(key, getattr(self, key), minimum=0)
        check_choice("beta_schedule", self.beta_schedule, get_args(BetaSchedule))
        check_choice("likelihood_weight", self.likelihood_weight, get_args(LikelihoodWeight))
        check_choice("map_search", self.map_search, get_args(Search))

    @property
    def packages(self) -> tuple[str, ...]:
        return ("torch",)

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GenerativePosterior:
        structure = self.find_graphs(dataset, rng)
        mechanisms = fit_gp_mechanisms(dataset, structure.graphs, self.likelihood_weight)
        return GenerativePosterior.of(structure, structure.sample_graphs(1, rng), mechanisms, dataset, rng)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> GraphPosterior:
    """Run in the process of the fit, on standardised observations."""
    import torch

    from baselines.dibs import Dibs
    from bci.family_scores import FamilyScoreCache

    num_nodes = observations.shape[1]
    dataset = Dataset(
        observations,
        tuple(f"X{node}" for node in range(num_nodes)),
        np.zeros(observations.shape, dtype=bool),
        Scaler(np.zeros(num_nodes), np.ones(num_nodes)),
    )
    settings = dict(settings)
    cache = FamilyScoreCache(
        dataset, likelihood_weight=settings.pop("likelihood_weight"), search=settings.pop("map_search")
    )
    generator = torch.Generator().manual_seed(seed)
    return Dibs(**settings).fit(cache, num_nodes, generator)
