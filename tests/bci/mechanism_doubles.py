"""Mechanisms for tests: linear ones with known interventional distributions, and wavy ones that hide no mistake."""

import numpy as np

from bci.predictive import Predictive, StudentT


class LinearMechanisms:
    """`x_i = sum_j weights[j, i] x_j + N(0, noise_i)`; a root has its own mean, and variance `noise_i`.

    weights (d, d), row causes column, are used for the parents that a graph has.
    """

    def __init__(self, weights, noise, root_means, df=9.0):
        self.weights, self.noise, self.root_means, self.df = weights, noise, root_means, df

    def root(self, node):
        variance_of_t = self.df / (self.df - 2)
        return StudentT(self.df, self.root_means[node], np.sqrt(self.noise[node] / variance_of_t))

    def predict(self, node, parents, inputs):
        return Predictive(inputs @ self.weights[list(parents), node], np.full(len(inputs), self.noise[node]))

    def moments(self, graph, do):
        """Exact mean (d,) and covariance (d, d) under do, by solving the structural equations."""
        kept, noise = self.weights * graph, self.noise.copy()
        shift = np.where(graph.any(axis=0), 0.0, self.root_means)
        for node, value in do.items():
            kept[:, node], noise[node], shift[node] = 0, 0, value
        total = np.linalg.inv(np.eye(len(graph)) - kept)  # [i, j]: effect of the error of i on j
        return shift @ total, total.T @ np.diag(noise) @ total


class WavyMechanisms:
    """Means and variances that depend on the node, on which parents it has and on all their values."""

    def __init__(self):
        self.calls = []

    def root(self, node):
        return StudentT(3.0 + node, np.cos(node), 1.0 + 0.1 * node)

    def predict(self, node, parents, inputs):
        self.calls.append((node, parents, len(inputs)))
        phases = np.sin(inputs * (1 + np.array(parents)) + node)
        return Predictive(phases.sum(axis=1), 0.1 + phases.prod(axis=1) ** 2)
