"""Sinkhorn normalisation: the doubly stochastic matrix `exp(X_ij - u_i - v_j)`, and its derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
_BLOCK = 20  # iterations between two looks at the potentials
_LARGEST_FACTOR = 1e100  # of a row or column before it is taken into the potentials
_RIDGE = 1e-9


class Sinkhorn:
    """Normalises rows, then columns, in log space, until all rows and columns sum to one within `tolerance`.

    Potentials are kept between calls with matrices of one shape: from the last ones, a matrix that has changed little
    takes few iterations, and the limit does not depend on where they start. Nor does the derivative, which is that of
    the limit (by the implicit function theorem) rather than of the iterations.

    Args:
        iterations: the most of them.
        tolerance: largest deviation of a sum from one.
    """

    def __init__(self, iterations: int, tolerance: float) -> None:
        self.iterations, self.tolerance = iterations, tolerance
        self._columns: Array | None = None
        self._last: tuple[Array, Array] | None = None  # logits and their matrix
        self._calls = self._iterations_used = 0

    @property
    def mean_iterations(self) -> float:
        """Over all matrices that were normalised."""
        return self._iterations_used / max(self._calls, 1)

    def __call__(self, logits: Tensor) -> Tensor:
        """(..., n, n) from (..., n, n), with a gradient."""
        matrix: Tensor = _Normalise.apply(logits, self)  # type: ignore[no-untyped-call]
        return matrix

    def normalise(self, logits: Array) -> Array:
        """(..., n, n) from (..., n, n)."""
        if self._last is not None and np.array_equal(self._last[0], logits):
            return self._last[1]
        start = self._columns
        if start is None or start.shape != (*logits.shape[:-2], 1, logits.shape[-1]):
            start = np.zeros((*logits.shape[:-2], 1, logits.shape[-1]))
        matrix, self._columns, used = _normalised(logits, start, self.iterations, self.tolerance)
        self._last = (logits.copy(), matrix)  # the caller's may change in place
        self._calls, self._iterations_used = self._calls + 1, self._iterations_used + used
        return matrix


def _normalised(logits: Array, columns: Array, iterations: int, tolerance: float) -> tuple[Array, Array, int]:
    """The matrix, the potentials of its columns, and the iterations used.

    An iteration in log space is followed by cheap ones on the matrix itself, as long as its factors are moderate
    (Schmitzer 2019, "Stabilized sparse scaling algorithms", section 3).
    """
    used = 0
    while True:
        rows = _log_sum_exp(logits - columns, -1)
        columns = _log_sum_exp(logits - rows, -2)
        matrix = np.exp(logits - rows - columns)  # all columns sum to one
        used += 1
        sums = matrix.sum(axis=-1, keepdims=True)
        if used >= iterations or np.abs(sums - 1).max() < tolerance:
            return matrix, columns, used
        transposed, column_factors = np.swapaxes(matrix, -1, -2), None
        for _ in range(_BLOCK):
            if not 1 / _LARGEST_FACTOR < sums.min() <= sums.max() < _LARGEST_FACTOR:
                break
            row_factors = 1 / sums
            column_factors = 1 / (transposed @ row_factors)
            sums = matrix @ column_factors
            used += 1
            if used >= iterations or np.abs(row_factors * sums - 1).max() < tolerance:
                factors = np.swapaxes(column_factors, -1, -2)
                return row_factors * matrix * factors, columns - np.log(factors), used
        if column_factors is not None:
            columns = columns - np.log(np.swapaxes(column_factors, -1, -2))


def _log_sum_exp(values: Array, axis: int) -> Array:
    largest = values.max(axis=axis, keepdims=True)
    total: Array = largest + np.log(np.exp(values - largest).sum(axis=axis, keepdims=True))
    return total


def _backward(matrix: Array, gradient: Array) -> Array:
    """Gradient with respect to the logits from that with respect to the matrix P.

    `dP = P * (dX - du 1^T - 1 dv^T)`, where du and dv keep the sums of rows and columns, so that the gradient is
    `P * (G - a 1^T - 1 b^T)` with `[diag(P 1), P; P^T, diag(P^T 1)] [a; b] = [(P * G) 1; (P * G)^T 1]`. A small
    ridge takes one of the solutions, which differ by a constant that moves from a to b.
    """
    size = matrix.shape[-1]
    weighted = matrix * gradient
    system = np.zeros((*matrix.shape[:-2], 2 * size, 2 * size))
    system[..., :size, size:] = matrix
    system[..., size:, :size] = np.swapaxes(matrix, -1, -2)
    diagonal = np.concatenate([matrix.sum(axis=-1), matrix.sum(axis=-2)], axis=-1)
    index = np.arange(2 * size)
    system[..., index, index] = diagonal + _RIDGE
    target = np.concatenate([weighted.sum(axis=-1), weighted.sum(axis=-2)], axis=-1)
    solved = np.linalg.solve(system, target[..., None])
    result: Array = weighted - matrix * (solved[..., :size, :] + np.swapaxes(solved[..., size:, :], -1, -2))
    return result


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, sinkhorn: Sinkhorn) -> Tensor:  # noqa: ANN401
        matrix = sinkhorn.normalise(logits.detach().double().numpy())
        ctx.matrix = matrix
        return torch.from_numpy(matrix).to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        result = _backward(ctx.matrix, gradient.double().numpy())
        return torch.from_numpy(result).to(gradient.dtype), None
