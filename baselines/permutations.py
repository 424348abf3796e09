"""Random permutations that gradients pass through: sorted perturbed scores, and assignments of a Sinkhorn matrix.

A permutation is a matrix of zeros and ones with one entry per row and column. A hard one is used in the forward pass,
the soft matrix that it was rounded from in the backward pass ("straight-through").
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def gumbel_noise(shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draws from the standard Gumbel distribution, minus the logarithm of an exponential variable."""
    return -torch.empty(shape, dtype=dtype).exponential_(generator=generator).log()


def soft_sort(scores: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Permutations that sort scores in descending order, soft and hard.

    `soft[r, j] = softmax_j(-|sorted_r - score_j| / temperature)`: how much item j is the one of rank r (Prillo and
    Eisenschlos 2020, "SoftSort"). Of scores with Gumbel noise the hard one is a draw from the Plackett-Luce model, its
    first k ranks are a draw of k items without replacement ("Gumbel-top-k").

    Args:
        scores: (..., items).

    Returns:
        Both (..., ranks, items); equal scores are ranked by item.
    """
    ranked = scores.sort(dim=-1, descending=True, stable=True)
    soft = (-(ranked.values[..., :, None] - scores[..., None, :]).abs() / temperature).softmax(dim=-1)
    return soft, torch.nn.functional.one_hot(ranked.indices, scores.shape[-1]).to(soft)


def assignment(matrices: Tensor) -> Tensor:
    """The permutations (..., n, n) with the largest sum of entries of `matrices` (..., n, n): the Hungarian method."""
    size = matrices.shape[-1]
    flat: NDArray[np.float64] = matrices.detach().double().numpy().reshape(-1, size, size)
    columns = np.stack([linear_sum_assignment(matrix, maximize=True)[1] for matrix in flat])  # it takes no batch
    hard = torch.nn.functional.one_hot(torch.from_numpy(columns.astype(np.int64)), size)
    return hard.to(matrices.dtype).reshape(matrices.shape)


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard` with the gradient of `soft`."""
    return hard.detach() + (soft - soft.detach())


def earlier(ranks: Tensor) -> Tensor:
    """(..., n, n) from permutations (..., ranks, items): entry [i, j] is 1 where item i comes before item j.

    `P^T U P` with U strictly upper triangular.
    """
    upper = torch.ones(ranks.shape[-1], ranks.shape[-1], dtype=ranks.dtype).triu(1)
    return ranks.mT @ upper @ ranks
