"""The ground truth: structural causal models with additive Gaussian noise that can be sampled under interventions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np

from bci.dataset import Bools, Floats
from bci.errors import InvalidInput
from bci.graphs import topological_order
from bci.mechanisms import (
    NOISE_VARIANCE_PRIOR,
    GammaPrior,
    Mechanism,
    draw_gp,
    draw_linear,
    draw_root,
    draw_sigmoid,
)

MechanismKind = Literal["gp", "sigmoid", "linear"]
SigmoidSigns = Literal["per_parent", "per_node"]


@dataclass(frozen=True, eq=False)
class AdditiveNoiseModel:
    """`X_i = mechanism_i(X_parents(i)) + N(0, noise_variance_i)`.

    Args:
        graph: (d, d) acyclic adjacency, row causes column.
        mechanisms: d functions; mechanism i takes its parents in ascending order of index, (n, p) -> (n,).
        noise_variances: (d,).
    """

    graph: Bools
    mechanisms: tuple[Mechanism, ...]
    noise_variances: Floats

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Nodes with every cause before its effects."""
        return tuple(topological_order(self.graph))

    def sample(self, n: int, rng: np.random.Generator, do: Mapping[int, float] | None = None) -> Floats:
        """`n` joint samples (n, d) under the intervention `do`: node index -> value.

        Raises:
            InvalidInput: `do` names a node that does not exist or a value that is not finite.
        """
        do = {} if do is None else do
        num_nodes = self.graph.shape[0]
        for node, value in do.items():
            if not (0 <= node < num_nodes and np.isfinite(value)):
                raise InvalidInput(
                    f"do: expected node indices from 0 to {num_nodes - 1} with finite values, got {node}: {value}"
                )
        samples: Floats = rng.standard_normal((n, num_nodes)) * np.sqrt(self.noise_variances)
        for node in self.order:
            if node in do:
                samples[:, node] = do[node]
            else:
                samples[:, node] += self.mechanisms[node](samples[:, self.graph[:, node]])
        return samples


def draw_scm(
    graph: Bools,
    mechanism: MechanismKind,
    rng: np.random.Generator,
    *,
    noise_variance: GammaPrior | float = NOISE_VARIANCE_PRIOR,
    sigmoid_signs: SigmoidSigns = "per_parent",
) -> AdditiveNoiseModel:
    """Random mechanisms and noise variances on `graph` (d, d).

    Args:
        mechanism: the kind of function of every node with parents (`bci.mechanisms`).
        noise_variance: prior of the noise variance of these nodes, or its one value; roots have their own prior.
        sigmoid_signs: see `bci.mechanisms.draw_sigmoid`.
    """
    draw_function: dict[MechanismKind, Callable[[int, np.random.Generator], Mechanism]] = {
        "gp": draw_gp,
        "sigmoid": partial(draw_sigmoid, signs=sigmoid_signs),
        "linear": draw_linear,
    }
    mechanisms: list[Mechanism] = []
    variances: list[float] = []
    for num_parents in graph.sum(axis=0):
        if num_parents == 0:
            root, variance = draw_root(rng)
            mechanisms.append(root)
            variances.append(variance)
        else:
            mechanisms.append(draw_function[mechanism](int(num_parents), rng))
            variances.append(noise_variance.draw(rng) if isinstance(noise_variance, GammaPrior) else noise_variance)
    return AdditiveNoiseModel(graph, tuple(mechanisms), np.array(variances))
