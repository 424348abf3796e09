"""The PC algorithm, of causal-learn or of gCastle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from baselines.causal_learn import adjacency
from baselines.implementations import IMPORT_NAMES, Implementation, check_only_used
from baselines.isolation import FittedGraphs
from baselines.packaged import PackagedMethod
from bci.dataset import Bools, Floats
from bci.errors import InvalidInput
from bci.posterior import GraphKind
from bci.settings import check_choice, check_count, check_number

Variant = Literal["stable", "original"]
IndependenceTest = Literal["fisherz", "kci"]
ColliderRule = Literal["sepset", "max_p", "definite_max_p"]
ColliderPriority = Literal["default", "overwrite", "existing", "stronger", "stronger_refined"]


@dataclass(frozen=True, kw_only=True)
class PC(PackagedMethod):
    """PC: a skeleton by tests of conditional independence, oriented by colliders and Meek's rules.

    Spirtes, Glymour & Scheines (2000), "Causation, prediction, and search"; the order-independent skeleton ("stable")
    is by Colombo & Maathuis (2014), "Order-independent constraint-based causal structure learning". Test results may
    contradict each other, so the graph need not be the CPDAG of any DAG, and which of two contradicting colliders comes
    first may depend on the order of the columns (not if collider_priority is "stronger").

    gCastle's search, with which the paper's figures were made, leaves out the conditioning sets among the neighbours
    of the later variable of each pair. With it even the skeleton depends on the order of the columns.

    Args:
        implementation: "causal_learn" or "castle".
        alpha: level of the tests.
        independence_test: "fisherz" (partial correlation), or "kci" (kernels; causal_learn only).
        variant: "stable" or "original".
        collider_rule: how colliders are found (causal_learn only).
        collider_priority: what happens when two colliders contradict each other (causal_learn only).
        max_conditioning: the largest conditioning set, None for no limit (causal_learn only).
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range, or one that the implementation does not read.
    """

    graph_kind: ClassVar[GraphKind] = "cpdag"

    implementation: Implementation = "causal_learn"
    alpha: float = 0.05
    independence_test: IndependenceTest = "fisherz"
    variant: Variant = "stable"
    collider_rule: ColliderRule = "sepset"
    collider_priority: ColliderPriority = "existing"
    max_conditioning: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("implementation", self.implementation, get_args(Implementation))
        check_number("alpha", self.alpha, positive=True)
        if self.alpha >= 1:
            raise InvalidInput(f"alpha: expected a level between 0 and 1, got {self.alpha}")
        check_choice("independence_test", self.independence_test, get_args(IndependenceTest))
        check_choice("variant", self.variant, get_args(Variant))
        check_choice("collider_rule", self.collider_rule, get_args(ColliderRule))
        check_choice("collider_priority", self.collider_priority, get_args(ColliderPriority))
        if self.max_conditioning is not None:
            check_count("max_conditioning", self.max_conditioning, 0)
        check_only_used(
            self,
            self.implementation,
            {"causal_learn": ("independence_test", "collider_rule", "collider_priority", "max_conditioning")},
        )

    @property
    def packages(self) -> tuple[str, ...]:
        return (IMPORT_NAMES[self.implementation],)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> FittedGraphs:  # noqa: ARG001
    """Run in the process of the fit; no part of PC is random."""
    implementation = {"causal_learn": _causal_learn, "castle": _castle}[settings["implementation"]]
    return FittedGraphs(implementation(observations, settings)[None], graph_kind="cpdag")


def _causal_learn(observations: Floats, settings: Mapping[str, Any]) -> Bools:
    from causallearn.search.ConstraintBased.PC import pc

    found = pc(
        observations,
        alpha=settings["alpha"],
        indep_test=settings["independence_test"],
        stable=settings["variant"] == "stable",
        uc_rule=get_args(ColliderRule).index(settings["collider_rule"]),
        uc_priority=_PRIORITIES[settings["collider_priority"]],
        max_k=settings["max_conditioning"],
        show_progress=False,
    )
    return adjacency(found.G.graph)


def _castle(observations: Floats, settings: Mapping[str, Any]) -> Bools:
    import castle.algorithms

    learner = castle.algorithms.PC(
        variant=settings["variant"], alpha=settings["alpha"], ci_test=settings["independence_test"]
    )
    learner.learn(observations)
    return np.asarray(learner.causal_matrix, dtype=bool)


# causal-learn's 1, bi-directed edges where colliders contradict each other, has no place in a CPDAG.
_PRIORITIES = {"default": -1, "overwrite": 0, "existing": 2, "stronger": 3, "stronger_refined": 4}
