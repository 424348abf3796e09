"""The average causal effects of all variables on all others, in one pass over graphs and interventions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bci.causal_posterior import CausalPosterior
from bci.dataset import Floats


class EffectMatrix(NamedTuple):
    """Posterior mean and standard deviation over graphs of every effect, (d, d), row causes column; diagonal zero."""

    mean: Floats
    std: Floats


def effect_matrix(posterior: CausalPosterior) -> EffectMatrix:
    """`E[x_j | do(x_i = 1)] - E[x_j | do(x_i = 0)]` for all i and j, standardised.

    That is the effect of raising a cause from its mean by one standard deviation, in standard deviations of the other
    variable. Every entry is what `average_causal_effect` says.
    """
    d = len(posterior.names)
    effects = posterior.graph_effects([({cause: 1.0}, {cause: 0.0}) for cause in range(d)])
    mean, std = (np.stack(rows) for rows in zip(*map(posterior.spread, effects), strict=True))
    for matrix in (mean, std):
        np.fill_diagonal(matrix, 0.0)
    return EffectMatrix(mean, std)
