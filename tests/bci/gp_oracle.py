"""Independent computations of GP log marginal likelihoods and MAP-II optima, in numpy and scipy."""

import numpy as np
from scipy import linalg, optimize, stats


def covariance(inputs, log_parameters):
    """Covariance (N, N) of targets for inputs (N, parents); logs of lengthscale, gamma, outputscale, noise."""
    lengthscale, gamma, outputscale, noise = np.exp(log_parameters)
    squared = ((inputs[:, None] - inputs[None]) ** 2).sum(-1)
    kernel = (1 + squared / (2 * gamma * lengthscale**2)) ** -gamma
    return outputscale * kernel + noise * np.eye(len(inputs))


def log_likelihood(inputs, target, log_parameters):
    return stats.multivariate_normal.logpdf(target, np.zeros(len(target)), covariance(inputs, log_parameters))


def log_prior(num_parents, log_parameters):
    shapes, rates = np.array([30 * num_parents, 20, 100, 2]), np.array([30, 10, 10, 8])
    return stats.gamma.logpdf(np.exp(log_parameters), shapes, scale=1 / rates).sum()


def optimum(inputs, target, likelihood_weight=1.0):
    """(objective, score, log parameters) at the best of several quasi-Newton optima."""
    num_parents = inputs.shape[1]
    squared = ((inputs[:, None] - inputs[None]) ** 2).sum(-1)
    shapes, rates = np.array([30 * num_parents, 20, 100, 2]), np.array([30, 10, 10, 8])

    def negative(logs):
        lengthscale, gamma, outputscale, noise = np.exp(logs)
        q = squared / (2 * gamma * lengthscale**2)
        signal = outputscale * (1 + q) ** -gamma
        root = linalg.cho_factor(signal + noise * np.eye(len(target)))
        inverse = linalg.cho_solve(root, np.eye(len(target)))
        solved = inverse @ target
        value = -0.5 * target @ solved - np.log(np.diag(root[0])).sum() - len(target) / 2 * np.log(2 * np.pi)
        weight = np.outer(solved, solved) - inverse
        log_ratio = np.log1p(q)
        slopes = [
            (weight * (signal * 2 * gamma * q / (1 + q))).sum() / 2,
            (weight * (signal * gamma * (q / (1 + q) - log_ratio))).sum() / 2,
            (weight * signal).sum() / 2,
            noise * np.trace(weight) / 2,
        ]
        gradient = likelihood_weight * np.array(slopes) + shapes - 1 - rates * np.exp(logs)
        return -(likelihood_weight * value + log_prior(num_parents, logs)), -gradient

    mode = num_parents - 1 / 30
    starts = [(1.15, 1.9, 9.9, 0.7), (1.1, 1.9, 9.9, 0.2), (0.5, 1.1, 9.9, 0.12)]
    bounds = [(-4, 4), (-2, 2), (1, 3.5), (-9, 2)]
    fits = []
    for factor, *others in starts:
        start = np.log([factor * mode, *others])
        fits.append(optimize.minimize(negative, start, jac=True, bounds=bounds, method="L-BFGS-B"))
    best = min(fits, key=lambda fit: fit.fun)
    return -best.fun, log_likelihood(inputs, target, best.x) + log_prior(num_parents, best.x), best.x
