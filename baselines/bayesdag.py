"""BayesDAG: stochastic-gradient Markov chains over orders and mechanisms, with a variational network for edges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from baselines.acyclic import posterior_of_samples
from baselines.message_networks import MessageNetworks
from baselines.order_and_edges import OrderAndEdges
from baselines.packaged import PackagedMethod
from baselines.sgmcmc import AdamSGMCMC
from baselines.sinkhorn import Sinkhorn
from bci.dataset import Floats
from bci.errors import InvalidInput
from bci.posterior import GraphPosterior
from bci.settings import check_choice, check_count, check_number

_P_START, _P_DEVIATION = 0.01, 0.1  # of p: spread at the start, and deviation of its normal prior


@dataclass(frozen=True, kw_only=True)
class BayesDAG(PackagedMethod):
    """BayesDAG with non-linear mechanisms and Gaussian noise.

    Annadani, Pawlowski, Jennings, Bauer, Zhang & Gong (2023), "BayesDAG: gradient-based posterior inference for causal
    discovery". Every update draws a graph. For p, which holds the order, and theta, the mechanisms, it is a step of a
    sampler; for the network that switches edges on and for the noise scales a step of Adam.

    The authors' program takes sampler steps whenever it evaluates itself while it trains, and these decide the result:
    `extra_sampler_steps` after every `extra_every`-th epoch, 37,500 by default.

    Args:
        num_chains: independent p and theta, of one network that switches edges on.
        sinkhorn_iterations, sinkhorn_tolerance: most iterations, and the deviation of a sum from one that ends them.
        scale_noise, scale_noise_p: factor of the sampler's noise, for theta and for p; 1 samples, 0 optimises.
        norm_layers: normalise the hidden layers of the mechanisms, as the authors do for simulated and protein data;
            without, they may shrink to zero under their prior before they have found an edge.
        vi_norm: normalise the input and the layers of the network for edges.
        input_perm: that network sees the permutation, not p.
        lambda_sparse: weight of the number of edges in the log prior.
        sparse_init: fewer edges at the start.
        sampler_learning_rate: of p and theta; 3e-4 in the authors' program, whatever the paper's listing says (1e-3).
        helper_learning_rate: of Adam.
        batch_size: rows of a minibatch.
        max_epochs: passes over the rows.
        extra_sampler_steps: steps of p and theta, all chains together, after an epoch; 0 for none.
        extra_every: epochs from one time to the next.
        num_samples: DAGs, one per further step and chain.
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    num_chains: int = 1
    sinkhorn_iterations: int = 3000
    sinkhorn_tolerance: float = 1e-3
    scale_noise: float = 0.001
    scale_noise_p: float = 0.001
    norm_layers: bool = True
    vi_norm: bool = True
    input_perm: bool = False
    lambda_sparse: float = 10.0
    sparse_init: bool = False
    sampler_learning_rate: float = 3e-4
    helper_learning_rate: float = 5e-3
    batch_size: int = 512
    max_epochs: int = 500
    extra_sampler_steps: int = 300
    extra_every: int = 4
    num_samples: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("num_chains", "sinkhorn_iterations", "batch_size", "max_epochs", "extra_every", "num_samples"):
            check_count(key, getattr(self, key), 1)
        check_count("extra_sampler_steps", self.extra_sampler_steps, 0)
        for key in ("sinkhorn_tolerance", "sampler_learning_rate", "helper_learning_rate"):
            check_number(key, getattr(self, key), positive=True)
        if self.sampler_learning_rate >= 2 * (1 - AdamSGMCMC.MOMENTUM):
            raise InvalidInput(
                f"sampler_learning_rate: expected less than {2 * (1 - AdamSGMCMC.MOMENTUM):g}, "
                f"got {self.sampler_learning_rate:g}, with which the noise would have no variance"
            )
        for key in ("scale_noise", "scale_noise_p", "lambda_sparse"):
            check_number(key, getattr(self, key), minimum=0)
        for key in ("norm_layers", "vi_norm", "input_perm", "sparse_init"):
            check_choice(key, getattr(self, key), [True, False])

    @property
    def packages(self) -> tuple[str, ...]:
        return ("torch",)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> GraphPosterior:
    """Run in the process of the fit."""
    chain = _Chains(torch.from_numpy(observations).float(), settings, torch.Generator().manual_seed(seed))
    chains, losses = settings["num_chains"], []
    for epoch in range(settings["max_epochs"]):
        for rows in chain.minibatches():
            losses.append((chain.update_p(rows) + chain.update_edges(rows) + chain.update_theta(rows)) / 3)
        if not math.isfinite(losses[-1]):
            raise FloatingPointError("expected a finite loss, but the fit diverged; lower the learning rates")
        if epoch % settings["extra_every"] == 0:
            for _ in range(math.ceil(settings["extra_sampler_steps"] / chains)):
                chain.sampler_step()
    visited = []
    for _ in range(math.ceil(settings["num_samples"] / chains)):
        chain.sampler_step()
        visited.append(chain.p.clone())
    graphs = chain.graphs_given(torch.cat(visited)[: settings["num_samples"]])
    return posterior_of_samples(
        graphs, {"loss": losses, "noise_scales": chain.log_scales.detach().exp().double().numpy(), **chain.cost()}
    )


class _Chains:
    """The state, and its updates on minibatches of rows (n, d); each draws one graph per chain.

    Losses are negative log posteriors divided by the number of rows of the data, up to constants.
    """

    def __init__(self, rows: Tensor, settings: Mapping[str, Any], generator: torch.Generator) -> None:
        self._rows, self._batch_size = rows, settings["batch_size"]
        self._num_rows, num_nodes = rows.shape
        self._lambda_sparse: float = settings["lambda_sparse"]
        self._generator = generator
        chains = settings["num_chains"]
        self._sinkhorn = Sinkhorn(settings["sinkhorn_iterations"], settings["sinkhorn_tolerance"])
        self._graphs = OrderAndEdges(
            num_nodes,
            self._sinkhorn,
            **{key: settings[key] for key in ("input_perm", "vi_norm", "sparse_init")},
            generator=generator,
        )
        self._networks = MessageNetworks(num_nodes, norm_layers=settings["norm_layers"])
        self.p = _P_START * torch.randn(chains, num_nodes, generator=generator)
        self.theta = self._networks.start(chains, generator)
        self.log_scales = torch.zeros(num_nodes, requires_grad=True)
        rate = settings["sampler_learning_rate"]
        self._p_sampler, self._theta_sampler = (
            AdamSGMCMC(state, learning_rate=rate, scale_noise=settings[noise], generator=generator)
            for state, noise in ((self.p, "scale_noise_p"), (self.theta, "scale_noise"))
        )
        self._adam = torch.optim.Adam([*self._graphs.parameters, self.log_scales], lr=settings["helper_learning_rate"])

    def minibatches(self) -> Iterator[Tensor]:
        """All rows, in random batches if one does not hold them."""
        if self._num_rows <= self._batch_size:
            return iter([self._rows])
        return iter(self._rows[torch.randperm(self._num_rows, generator=self._generator)].split(self._batch_size))  # type: ignore[no-untyped-call]

    def sampler_step(self) -> None:
        """p and theta on one batch."""
        rows = next(self.minibatches())
        self.update_p(rows)
        self.update_theta(rows)

    def update_p(self, rows: Tensor) -> float:
        p = self.p.detach().requires_grad_()
        graphs, _ = self._graphs.sample(p)
        prior = (p / _P_DEVIATION).square().sum() / 2
        loss = self._loss(rows, self.theta, self.log_scales.detach(), graphs) + prior / self._num_rows
        (gradient,) = torch.autograd.grad(loss, p)
        self._p_sampler.update(gradient * self._num_rows)
        return loss.item()

    def update_theta(self, rows: Tensor) -> float:
        with torch.no_grad():
            graphs, _ = self._graphs.sample(self.p)
        theta = self.theta.detach().requires_grad_()
        prior = theta.square().sum() / 2
        loss = self._loss(rows, theta, self.log_scales.detach(), graphs) + prior / self._num_rows
        (gradient,) = torch.autograd.grad(loss, theta)
        self._theta_sampler.update(gradient * self._num_rows)
        return loss.item()

    def update_edges(self, rows: Tensor) -> float:
        """The helper network and the noise scales; the log prior of W, Bernoulli(1/2), is constant."""
        graphs, logits = self._graphs.sample(self.p)
        entropy = torch.distributions.Bernoulli(logits=logits).entropy().sum()  # type: ignore[no-untyped-call]
        loss = self._loss(rows, self.theta, self.log_scales, graphs) - entropy / self._num_rows
        self._adam.zero_grad()
        loss.backward()
        self._adam.step()
        value: float = loss.item()
        return value

    def graphs_given(self, p: Tensor) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(n, d, d), one draw for every row of p (n, d)."""
        with torch.no_grad():
            graphs, _ = self._graphs.sample(p)
        drawn: np.ndarray[Any, np.dtype[np.bool_]] = graphs.numpy() > 0.5
        return drawn

    def cost(self) -> dict[str, float]:
        """Iterations per normalisation."""
        return {"sinkhorn_iterations": self._sinkhorn.mean_iterations}

    def _loss(self, rows: Tensor, theta: Tensor, log_scales: Tensor, graphs: Tensor) -> Tensor:
        """Negative log-likelihood, averaged over rows and summed over chains, plus the penalty on edges."""
        values = rows.T
        residuals = (values - self._networks.predict(theta, values, graphs)) / log_scales.exp()[:, None]
        loss: Tensor = residuals.square().sum() / (2 * len(rows)) + len(graphs) * log_scales.sum()
        return loss + self._lambda_sparse * graphs.abs().sum() / self._num_rows
