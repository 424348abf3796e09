"""Ancestral sampling of many graphs under many interventions, one predictive call per family and level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bci.dataset import Bools, Floats
from bci.predictive import Family, Mechanisms, families

_ENTRIES_AT_ONCE = 2**23  # of the samples under several interventions


class AncestralSamples(NamedTuple):
    """Of every graph: `values` (graphs, n, d), and `means` likewise, those of the distributions they were drawn from.

    `means` are given the values of the parents; a variable that is set by an intervention has its value as its mean.
    """

    values: Floats
    means: Floats


class Reference(NamedTuple):
    """Samples without intervention and the random numbers behind them, standardised, (graphs, n, d)."""

    samples: AncestralSamples
    noise: Floats


@dataclass(frozen=True, eq=False)
class AncestralSampler:
    """Samples from the models that `graphs` (graphs, d, d), all acyclic, and `mechanisms` describe together."""

    graphs: Bools
    mechanisms: Mechanisms

    def reference(self, n: int, rng: np.random.Generator) -> Reference:
        """`n` samples of every graph without intervention, from random numbers that interventions use again."""
        num_graphs, num_nodes = self.graphs.shape[:2]
        noise = rng.standard_normal((num_graphs, n, num_nodes))
        for node in range(num_nodes):
            is_root = ~self.graphs[:, :, node].any(axis=1)
            if is_root.any():
                noise[is_root, :, node] = rng.standard_t(self.mechanisms.root(node).df, size=(int(is_root.sum()), n))
        empty = AncestralSamples(np.zeros((1, *noise.shape)), np.zeros((1, *noise.shape)))
        self._fill(empty, noise, np.ones((1, num_graphs, num_nodes), dtype=bool))
        return Reference(AncestralSamples(empty.values[0], empty.means[0]), noise)

    def under(self, interventions: Sequence[Mapping[int, float]], reference: Reference) -> Iterator[AncestralSamples]:
        """Samples under each intervention (node -> value); descendants of its targets differ from the reference."""
        at_once = max(1, _ENTRIES_AT_ONCE // reference.noise.size)
        for start in range(0, len(interventions), at_once):
            chunk = interventions[start : start + at_once]
            samples = AncestralSamples(*(np.stack([array] * len(chunk)) for array in reference.samples))
            changed = np.stack([self._descendants(list(do)) for do in chunk])
            for number, do in enumerate(chunk):
                for node, value in do.items():
                    samples.values[number, :, :, node] = samples.means[number, :, :, node] = value
            self._fill(samples, reference.noise, changed)
            yield from map(AncestralSamples, *samples)

    def _fill(self, samples: AncestralSamples, noise: Floats, wanted: Bools) -> None:
        """Draw the `wanted` (interventions, graphs, d) variables of `samples` (interventions, graphs, n, d)."""
        for (node, parents), members in self._groups:
            which, place = np.nonzero(wanted[:, members, node])
            if not which.size:
                continue
            graph = members[place]
            mean: Floats | float
            scale: Floats | float
            if parents:
                inputs = samples.values[which, graph][:, :, parents]  # (drawn, n, parents)
                predictive = self.mechanisms.predict(node, parents, inputs.reshape(-1, len(parents)))
                mean = predictive.mean.reshape(inputs.shape[:2])
                scale = np.sqrt(predictive.variance).reshape(inputs.shape[:2])
            else:
                _, mean, scale = self.mechanisms.root(node)
            samples.means[which, graph, :, node] = mean
            samples.values[which, graph, :, node] = mean + scale * noise[graph, :, node]

    @cached_property
    def _groups(self) -> list[tuple[Family, NDArray[np.intp]]]:
        """Families with the numbers of the graphs they are in, in an order in which parents come first."""
        depth = np.zeros(self.graphs.shape[:2], dtype=np.intp)  # length of the longest path to a node
        for _ in range(self.graphs.shape[1]):
            depth = np.where(self.graphs, depth[:, :, None] + 1, 0).max(axis=1)
        if depth.max() >= self.graphs.shape[1]:
            raise ValueError("expected acyclic graphs, got one with a cycle")
        groups = defaultdict(list)
        for number, graph in enumerate(self.graphs):
            for family in families(graph):
                groups[depth[number, family[0]], family].append(number)
        return [(family, np.array(groups[level, family])) for level, family in sorted(groups)]

    def _descendants(self, targets: list[int]) -> Bools:
        """(graphs, d): whom an intervention on the targets reaches, targets left out."""
        reached = np.zeros(self.graphs.shape[:2], dtype=bool)
        reached[:, targets] = True
        while True:
            further = reached | (reached[:, :, None] & self.graphs).any(axis=1)
            further[:, targets] = True
            if (further == reached).all():
                break
            reached = further
        reached[:, targets] = False
        return reached
