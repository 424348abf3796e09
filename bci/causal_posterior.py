"""Posteriors that answer causal queries: what would happen to the other variables if some were set to given values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bci.ancestral import AncestralSampler, Reference
from bci.dataset import Dataset, Floats, Scaler
from bci.errors import InvalidInput
from bci.graphs import groups_of_equal
from bci.posterior import GraphKind, Posterior, WeightedGraphs
from bci.predictive import Mechanisms
from bci.randomness import MAX_SEED
from bci.settings import check_count, check_number

Intervention = Mapping[int | str, float]
"""What some variables, by index or name, are set to; empty for no intervention."""

MEAN_SAMPLES = 10_000
MOST_SAMPLES = 10_000_000


class WeightedSamples(NamedTuple):
    """Samples (n, d) with weights (n,) that sum to one."""

    samples: Floats
    weights: Floats


class CausalEffect(NamedTuple):
    """`E[target | do] - E[target | baseline]`: its posterior mean and standard deviation over graphs.

    `per_graph` (graphs,) is the effect in every graph, `weights` (graphs,) are the graphs' weights. Where effects in
    single graphs are Monte-Carlo estimates, the variance of those is taken out of the standard deviation.
    """

    mean: float
    std: float
    per_graph: Floats
    weights: Floats


class GraphEffects(NamedTuple):
    """Changes of the means of all variables in every query graph, (graphs, d), and the variances of their errors."""

    means: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class CausalPosterior(Posterior):
    """A graph posterior that answers queries about means; a subclass says what they are in every graph.

    Args:
        structure: the posterior over graphs.
        query_graphs: the weighted DAGs that queries average over.
        names: d variable names.
        scaler: of the training data; interventions and answers are on the standardised scale, unless
            `original_scale`, which puts both on the scale of the data.
    """

    structure: Posterior
    query_graphs: WeightedGraphs
    names: tuple[str, ...]
    scaler: Scaler

    @property
    def graph_kind(self) -> GraphKind:  # type: ignore[override]
        return self.structure.graph_kind

    @property
    def diagnostics(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self.structure.diagnostics

    @property
    def edge_probabilities(self) -> Floats:
        return self.structure.edge_probabilities

    def sample_graphs(self, n: int, rng: np.random.Generator) -> WeightedGraphs:
        return self.structure.sample_graphs(n, rng)

    @abstractmethod
    def _graph_means(self, interventions: Sequence[Mapping[int, float]]) -> Floats:
        """Means under every intervention in every query graph, (interventions, graphs, d), standardised.

        The same random numbers serve all interventions, here and in other calls.
        """

    def graph_effects(self, contrasts: Sequence[tuple[Mapping[int, float], Mapping[int, float]]]) -> list[GraphEffects]:
        """What changes from the second to the first intervention (node -> value) of each contrast, standardised."""
        means = self._graph_means([do for contrast in contrasts for do in contrast])
        differences = means[::2] - means[1::2]
        return [GraphEffects(difference, np.zeros_like(difference)) for difference in differences]

    def spread(self, effects: GraphEffects) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation (d,) over graphs, errors of estimation taken out of the latter."""
        weights = self.query_graphs.weights[:, None]
        mean = (weights * effects.means).sum(axis=0)
        total = np.bincount(self._groups, self.query_graphs.weights)[self._groups]
        own = (1 - total[:, None]) * effects.errors  # equal graphs have the same error
        variance = (weights * ((effects.means - mean) ** 2 - own)).sum(axis=0)
        return mean, np.sqrt(variance.clip(min=0))

    def interventional_means(self, interventions: Sequence[Intervention], *, original_scale: bool = False) -> Floats:
        """Posterior means of all variables under each of many interventions, (interventions, d).

        Raises:
            InvalidInput: an unknown variable, one given twice, or a value that is not finite.
        """
        parsed = [self._parse(do, original_scale) for do in interventions]
        means: Floats = np.einsum("g,igd->id", self.query_graphs.weights, self._graph_means(parsed))
        return self.scaler.inverse(means) if original_scale else means

    def interventional_mean(self, do: Intervention, *, original_scale: bool = False) -> Floats:
        """Posterior means (d,) of all variables under `do`; a function of `do`, as is everything but samples.

        Raises:
            InvalidInput: as `interventional_means`.
        """
        mean: Floats = self.interventional_means([do], original_scale=original_scale)[0]
        return mean

    def average_causal_effect(
        self, target: int | str, do: Intervention, baseline: Intervention | None = None, *, original_scale: bool = False
    ) -> CausalEffect:
        """The change in the mean of `target` under `do`, against `baseline` or against no intervention.

        Raises:
            InvalidInput: as `interventional_means`, or `do` is empty.
        """
        if not do:
            raise InvalidInput("do: expected at least one variable and its value, got none")
        node = self._node("target", target)
        contrast = self._parse(do, original_scale), self._parse(baseline or {}, original_scale)
        effects = self.graph_effects([contrast])[0]
        mean, std = (float(part[node]) for part in self.spread(effects))
        unit = float(self.scaler.std[node]) if original_scale else 1.0
        return CausalEffect(unit * mean, unit * std, unit * effects.means[:, node], self.query_graphs.weights)

    @cached_property
    def _groups(self) -> NDArray[np.intp]:
        """(graphs,), the number of the group of equal query graphs that each is in."""
        return groups_of_equal(self.query_graphs.graphs)[1]

    def _node(self, key: str, variable: int | str) -> int:
        if isinstance(variable, str) and variable in self.names:
            return self.names.index(variable)
        if isinstance(variable, Integral) and 0 <= variable < len(self.names):
            return int(variable)
        raise InvalidInput(
            f"{key}: expected a variable among {', '.join(self.names)} or an index below {len(self.names)}, "
            f"got {variable!r}"
        )

    def _parse(self, do: Intervention, original_scale: bool) -> dict[int, float]:
        """Node -> standardised value."""
        parsed: dict[int, float] = {}
        for variable, value in do.items():
            node = self._node("do", variable)
            if node in parsed:
                raise InvalidInput(f"do: expected every variable once, got {self.names[node]!r} twice")
            check_number(f"do({self.names[node]})", value)
            centre, unit = (self.scaler.mean[node], self.scaler.std[node]) if original_scale else (0.0, 1.0)
            parsed[node] = float((value - centre) / unit)
        return parsed


@dataclass(frozen=True, eq=False)
class GenerativePosterior(CausalPosterior):
    """A causal posterior that can be sampled from: every variable has a predictive distribution given its parents.

    Args:
        mechanisms: predictive distributions of all families of `query_graphs`.
        seed: of the random numbers behind means.
        mean_samples: Monte-Carlo samples behind a mean, shared over the graphs, at least one each.
    """

    mechanisms: Mechanisms
    seed: int
    mean_samples: int = MEAN_SAMPLES

    @classmethod
    def of(
        cls,
        structure: Posterior,
        query_graphs: WeightedGraphs,
        mechanisms: Mechanisms,
        dataset: Dataset,
        rng: np.random.Generator,
    ) -> Self:
        """The posterior at the end of a fit to `dataset`; its seed is drawn from `rng`."""
        seed = int(rng.integers(MAX_SEED))
        return cls(structure, query_graphs, dataset.names, dataset.scaler, mechanisms, seed)

    def sample_interventional(
        self, do: Intervention, n: int, rng: np.random.Generator, *, original_scale: bool = False
    ) -> WeightedSamples:
        """Samples under `do`: as many from every query graph, in all `n` or the next multiple of their number.

        Raises:
            InvalidInput: as `interventional_means`.
        """
        samples, weights = next(self.sample_many([do], n, rng, original_scale=original_scale))
        return WeightedSamples(samples, weights)

    def sample_many(
        self, interventions: Sequence[Intervention], n: int, rng: np.random.Generator, *, original_scale: bool = False
    ) -> Iterator[WeightedSamples]:
        """As `sample_interventional`, for each of many interventions; the same random numbers serve all of them."""
        check_count("n", n, 1)
        if n > MOST_SAMPLES:
            raise InvalidInput(f"n: expected at most {MOST_SAMPLES} samples at once, got {n}; ask several times")
        parsed = [self._parse(do, original_scale) for do in interventions]
        per_graph = self._samples_per_graph(n)
        weights = np.repeat(self.query_graphs.weights / per_graph, per_graph)
        reference = self._sampler.reference(per_graph, rng)
        for values, _ in self._sampler.under(parsed, reference):
            samples = values.reshape(-1, len(self.names))
            yield WeightedSamples(self.scaler.inverse(samples) if original_scale else samples, weights)

    def _graph_means(self, interventions: Sequence[Mapping[int, float]]) -> Floats:
        """The mean of a variable is that of its predictive means given sampled ancestors."""
        return np.stack([means.mean(axis=1) for _, means in self._sampler.under(interventions, self._mean_reference)])

    def graph_effects(self, contrasts: Sequence[tuple[Mapping[int, float], Mapping[int, float]]]) -> list[GraphEffects]:
        """As in every causal posterior; graphs that are the same share their samples."""
        interventions = [do for contrast in contrasts for do in contrast]
        samples = self._sampler.under(interventions, self._mean_reference)
        found = []
        for (_, under), (_, without) in zip(samples, samples, strict=True):
            change = under - without  # (graphs, n, d)
            count = np.bincount(self._groups)[:, None] * change.shape[1]
            first, second = np.zeros((2, len(count), change.shape[2]))
            np.add.at(first, self._groups, change.sum(axis=1))
            np.add.at(second, self._groups, np.square(change).sum(axis=1))
            mean = first / count
            error = (second / count - mean**2).clip(min=0) / np.maximum(count - 1, 1)
            found.append(GraphEffects(mean[self._groups], error[self._groups]))
        return found

    @cached_property
    def _sampler(self) -> AncestralSampler:
        return AncestralSampler(self.query_graphs.graphs, self.mechanisms)

    @cached_property
    def _mean_reference(self) -> Reference:
        rng = np.random.default_rng(self.seed)
        return self._sampler.reference(self._samples_per_graph(self.mean_samples), rng)

    def _samples_per_graph(self, n: int) -> int:
        return math.ceil(n / len(self.query_graphs.weights))
