"""A control that needs no causal idea: sort the variables by a number, then regress each on those before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LassoLarsIC, LinearRegression

from bci.dataset import Bools, Dataset, Floats
from bci.errors import InvalidInput
from bci.method import Method
from bci.posterior import GraphPosterior
from bci.settings import check_choice

Criterion = Literal["r2", "variance"]
Scale = Literal["raw", "standardised"]

_DIGITS = 9  # numbers that agree so far are ties


@dataclass(frozen=True, kw_only=True)
class SortRegress(Method):
    """Variables in increasing order of a criterion, each with the parents that a sparse linear regression keeps.

    Simulated data often have variances, and shares of explained variance, that grow along the causal order (Reisach,
    Seiler & Weichwald 2021, "Beware of the simulated DAG!"; Reisach, Tami, Seiler, Chambaz & Weichwald 2023, "A
    scale-invariant sorting criterion to find a causal order in additive noise models"). A method has learnt something
    where it beats this. The regression is an adaptive lasso, its penalty chosen by the BIC.

    Args:
        criterion: "r2", the share of variance explained by all other variables, whatever the scale; or "variance".
        scale: where variances are taken, "raw" (as the data came, which no other method sees) or "standardised" (all
            are equal, so the order is random).

    Raises:
        InvalidInput: a setting out of range.
    """

    criterion: Criterion = "r2"
    scale: Scale = "raw"

    def __post_init__(self) -> None:
        check_choice("criterion", self.criterion, get_args(Criterion))
        check_choice("scale", self.scale, get_args(Scale))

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GraphPosterior:
        num_samples, num_nodes = dataset.observations.shape
        if num_samples <= num_nodes + 1:
            raise InvalidInput(
                f"data: expected at least {num_nodes + 2} rows to regress {num_nodes} variables on each other, "
                f"got {num_samples}; add data or use another method"
            )
        if self.criterion == "r2":
            values = explained_variances(dataset.observations)
        elif self.scale == "raw":
            values = (dataset.observations * dataset.scaler.std).var(axis=0)
        else:
            values = dataset.observations.var(axis=0)
        order = increasing_order(values, rng)
        graph = regress_on_predecessors(dataset.observations, order)
        return GraphPosterior(graph[None], diagnostics={"causal_order": order.tolist()})


def explained_variances(observations: Floats) -> Floats:
    """(d,) R^2 of the linear regression of every variable on all others; 1 - 1 / the diagonal of the inverse
    correlation matrix, which is pseudo-inverted where it is singular."""
    correlation = np.corrcoef(observations, rowvar=False)
    shares: Floats = 1 - 1 / np.linalg.pinv(correlation, hermitian=True).diagonal()
    return shares


def increasing_order(values: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices of `values` (d,) in increasing order, ties in random order."""
    shuffled = rng.permutation(len(values))
    rounded = np.round(values / np.abs(values).max(), _DIGITS)
    order = shuffled[np.argsort(rounded[shuffled], kind="stable")]
    return np.asarray(order)


def regress_on_predecessors(observations: Floats, order: NDArray[np.intp]) -> Bools:
    """(d, d) DAG, row causes column: the non-zero coefficients of each variable (N, d) on those before it.

    The lasso is fitted to predictors scaled by their least-squares coefficients (Zou 2006, "The adaptive lasso and its
    oracle properties").
    """
    graph = np.zeros((len(order), len(order)), dtype=bool)
    for place in range(1, len(order)):
        predecessors, node = order[:place], order[place]
        predictors, target = observations[:, predecessors], observations[:, node]
        weights = np.abs(LinearRegression().fit(predictors, target).coef_)
        graph[predecessors, node] = LassoLarsIC(criterion="bic").fit(predictors * weights, target).coef_ * weights != 0
    return graph
