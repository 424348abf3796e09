"""A causal posterior with linear-Gaussian mechanisms: posterior means of effects in closed form.

Viinikka, Hyttinen, Pensar & Koivisto (2020), "Towards scalable Bayesian learning of causal DAGs", section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bci.causal_posterior import CausalPosterior
from bci.dataset import Bools, Dataset, Floats
from bci.posterior import GraphPosterior, WeightedGraphs
from bci.predictive import Family, families

_PRIOR_ROWS = 1.0  # alpha_mu: how many rows the prior of the means is worth


@dataclass(frozen=True, eq=False)
class LinearPosterior(CausalPosterior):
    """Means under interventions in linear-Gaussian models; the distributions around them are left out.

    Given a DAG, the weights of a node's parents are multivariate t, independently between nodes, and a mean under an
    intervention is linear in the weights of every node. So it is that of the model with the posterior means of all
    weights, exactly.

    Args:
        coefficients: posterior mean weights in every query graph, (graphs, d, d), row causes column.
        means: posterior means (d,) of the variables without intervention.
    """

    coefficients: Floats
    means: Floats

    def _graph_means(self, interventions: Sequence[Mapping[int, float]]) -> Floats:
        """Solve `x - mu = B (x - mu)` for every intervention and graph, the targets cut off and set to their values."""
        num_nodes = len(self.means)
        solved = np.empty((len(interventions), *self.coefficients.shape[:2]))
        for number, do in enumerate(interventions):
            targets, values = list(do), np.array(list(do.values()))
            system = np.eye(num_nodes) - self.coefficients.mT
            system[:, targets, :] = np.eye(num_nodes)[targets]
            shift = np.zeros(num_nodes)
            shift[targets] = values - self.means[targets]
            solved[number] = self.means + np.linalg.solve(system, shift[:, None])[:, :, 0]
            solved[number][:, targets] = values
        return solved


def fit_linear_posterior(structure: GraphPosterior, dataset: Dataset) -> LinearPosterior:
    """Linear mechanisms on all graphs of a posterior over DAGs, from data without interventions."""
    graphs, weights = structure.graphs, structure.weights
    assert weights is not None
    model = LinearModel.fit(dataset.observations)
    return LinearPosterior(
        structure=structure,
        query_graphs=WeightedGraphs(graphs, weights),
        names=dataset.names,
        scaler=dataset.scaler,
        coefficients=model.coefficients(graphs),
        means=model.means,
    )


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The posterior of a linear-Gaussian model with the prior of the BGe score, for any parent set.

    The prior has alpha_mu = 1, alpha_w = d + alpha_mu + 1, nu = 0 and T = I (alpha_w - d - 1) / (alpha_mu + 1). With
    the mean m and the scatter S_N of N rows the posterior has `R = T + S_N + alpha_mu N / (alpha_mu + N) m m^T` and
    means `N m / (alpha_mu + N)`.

    Args:
        scatter: R, (d, d).
        means: (d,).
    """

    scatter: Floats
    means: Floats

    @classmethod
    def fit(cls, observations: Floats) -> LinearModel:
        """From rows (N, d) without interventions."""
        num_rows, num_nodes = observations.shape
        degrees = num_nodes + _PRIOR_ROWS + 1
        mean = observations.mean(axis=0)
        centred = observations - mean
        prior = np.eye(num_nodes) * (degrees - num_nodes - 1) / (_PRIOR_ROWS + 1)
        shift = _PRIOR_ROWS * num_rows / (_PRIOR_ROWS + num_rows) * np.outer(mean, mean)
        return cls(prior + centred.T @ centred + shift, num_rows * mean / (_PRIOR_ROWS + num_rows))

    def weights(self, node: int, parents: tuple[int, ...]) -> Floats:
        """`R_PP^-1 R_Pi`, the posterior mean of the weights (parents,)."""
        among = list(parents)
        solved = np.linalg.solve(self.scatter[np.ix_(among, among)], self.scatter[among, node])
        return np.asarray(solved, dtype=np.float64)

    def coefficients(self, graphs: Bools) -> Floats:
        """Posterior mean weights (graphs, d, d), row causes column, solved once for every family."""
        known: dict[Family, Floats] = {}
        coefficients = np.zeros(graphs.shape)
        for graph, weights in zip(graphs, coefficients, strict=True):
            for node, parents in families(graph):
                if (node, parents) not in known:
                    known[node, parents] = self.weights(node, parents)
                weights[list(parents), node] = known[node, parents]
        return coefficients
