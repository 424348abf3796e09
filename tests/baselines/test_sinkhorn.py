from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from baselines.sinkhorn import Sinkhorn


def in_turn(logits, iterations=20_000, tolerance=1e-11):
    """The textbook loop, with the derivative of its iterations."""
    for _ in range(iterations):
        logits = logits - logits.logsumexp(-1, keepdim=True)
        logits = logits - logits.logsumexp(-2, keepdim=True)
        if (logits.exp().sum(-1) - 1).abs().max() < tolerance:
            break
    return logits.exp()


def logits_of_orders(scale, size=6, seed=0):
    """(2, size, size), as BayesDAG makes them, in double precision."""
    p = scale * torch.randn(2, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (p[:, :, None] * torch.arange(1, size + 1)).requires_grad_()


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_matrix_and_derivative_are_those_of_the_iterations(scale):
    logits, weights = logits_of_orders(scale), torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(1))
    matrix, expected = Sinkhorn(20_000, 1e-11)(logits), in_turn(logits)
    torch.testing.assert_close(matrix, expected, rtol=0, atol=1e-8)
    gradients = [torch.autograd.grad((values * weights).sum(), logits)[0] for values in (matrix, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 10.0, 300.0])
def test_rows_and_columns_sum_to_one_within_the_tolerance(scale):
    matrix = Sinkhorn(100_000, 1e-3).normalise(logits_of_orders(scale, size=12).detach().numpy())
    np.testing.assert_allclose(matrix.sum(axis=-1), 1, rtol=0, atol=1e-3)
    np.testing.assert_allclose(matrix.sum(axis=-2), 1, rtol=0, atol=1e-3)


def test_iterations_are_those_of_the_loop_and_end_at_the_limit():
    logits = logits_of_orders(2.0)
    limited = Sinkhorn(7, 1e-12)
    torch.testing.assert_close(limited(logits), in_turn(logits, iterations=7), rtol=0, atol=1e-9)
    assert limited.mean_iterations == 7


def test_a_second_matrix_alike_takes_fewer_iterations_to_the_same_limit():
    logits = logits_of_orders(3.0).detach().numpy()
    tight, warm = Sinkhorn(20_000, 1e-9), Sinkhorn(20_000, 1e-9)
    warm.normalise(logits)
    first = warm.mean_iterations
    moved = logits * (1 + 1e-6)
    np.testing.assert_allclose(warm.normalise(moved), tight.normalise(moved), rtol=0, atol=1e-6)
    assert 2 * warm.mean_iterations - first < 0.8 * first
    warm.normalise(moved)  # known already
    assert warm.mean_iterations * 2 - first < 0.8 * first


def test_a_matrix_that_changed_in_place_is_normalised_anew():
    logits = logits_of_orders(1.0).detach()
    sinkhorn = Sinkhorn(20_000, 1e-9)
    sinkhorn(logits)
    logits[0, 0, 0] += 3
    torch.testing.assert_close(sinkhorn(logits), in_turn(logits), rtol=0, atol=1e-6)


def test_the_assignment_of_an_order_sorts_it():
    logits = logits_of_orders(0.5, size=4).detach().numpy()
    for values, matrix in zip(logits, Sinkhorn(3000, 1e-3).normalise(logits), strict=True):
        _, positions = linear_sum_assignment(matrix, maximize=True)
        np.testing.assert_array_equal(positions, values[:, 0].argsort().argsort())
