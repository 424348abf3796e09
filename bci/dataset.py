"""The data contract: standardised observations with everything known about how they came about."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bci.errors import InvalidInput
from bci.graphs import find_cycle

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MAGNITUDES = (1e-300, 1e300)  # of the values of a variable; their differences and means are computed in float64


class StructuralCausalModel(Protocol):
    """Ground truth that can be sampled, on the original scale of the data."""

    @property
    def graph(self) -> Bools:
        """Adjacency (d, d), row causes column."""
        ...

    def sample(self, n: int, rng: np.random.Generator, do: Mapping[int, float] | None = None) -> Floats:
        """`n` joint samples (n, d) under the intervention `do`: node index -> value."""
        ...


class InterventionalSample(NamedTuple):
    """Samples from the true distribution under do(targets = values), on the standardised scale."""

    targets: tuple[int, ...]
    values: tuple[float, ...]
    samples: Floats  # (n, d)


@dataclass(frozen=True, eq=False)
class Scaler:
    """Per-variable standardisation by the training mean and standard deviation (ddof=1), each (d,)."""

    mean: Floats
    std: Floats

    @classmethod
    def fit(cls, raw: Floats) -> Scaler:
        # Powers of two of large and small numbers are taken out, which is exact, so that no square leaves the range.
        exponent = np.frexp(np.abs(raw).max(axis=0))[1]
        scaled = np.ldexp(raw, -exponent)
        return cls(mean=np.ldexp(scaled.mean(axis=0), exponent), std=np.ldexp(scaled.std(axis=0, ddof=1), exponent))

    def transform(self, raw: Floats) -> Floats:
        return (raw - self.mean) / self.std

    def inverse(self, standardised: Floats) -> Floats:
        return standardised * self.std + self.mean


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training data on the standardised scale, and the ground truth where there is one.

    Build it with `Dataset.from_raw`, which checks and standardises.

    Args:
        observations: (N, d) float64, every column standardised by `scaler`.
        names: d unique variable names.
        intervened: (N, d), true where the value was set by an intervention; all false for observational rows.
        scaler: mean and standard deviation of the raw training data.
        graph: (d, d) adjacency, `[i, j]` true iff i -> j (row causes column), or None if unknown.
        scm: the generating model on the raw scale, or None.
        draw_interventional_test: draws the test interventions; called at most once, on first use.

    Raises:
        InvalidInput: shapes or names disagree, or the graph has a cycle.
    """

    observations: Floats
    names: tuple[str, ...]
    intervened: Bools
    scaler: Scaler
    graph: Bools | None = None
    scm: StructuralCausalModel | None = None
    draw_interventional_test: Callable[[], Sequence[InterventionalSample]] | None = None

    def __post_init__(self) -> None:
        check_shapes(self.observations, self.names, self.intervened)
        if self.graph is not None:
            check_graph(self.graph, self.names)

    @classmethod
    def from_raw(
        cls,
        raw: Floats,
        names: Sequence[str],
        *,
        intervened: Bools | None = None,
        graph: Bools | None = None,
        scm: StructuralCausalModel | None = None,
        draw_interventional_test: Callable[[Scaler], Sequence[InterventionalSample]] | None = None,
    ) -> Dataset:
        """Check raw data (N, d), standardise it and wrap it.

        Raises:
            InvalidInput: as the class, and for values that no method can learn from (`check_values`).
        """
        raw = np.array(raw, dtype=np.float64, order="C")  # the memory layout decides the last bits of a mean
        mask = np.zeros(raw.shape, dtype=bool) if intervened is None else np.array(intervened, dtype=bool)
        check_shapes(raw, names, mask)
        check_values(raw, names)
        scaler = Scaler.fit(raw)
        draw = draw_interventional_test
        return cls(
            observations=scaler.transform(raw),
            names=tuple(names),
            intervened=mask,
            scaler=scaler,
            graph=None if graph is None else np.array(graph, dtype=bool),
            scm=scm,
            draw_interventional_test=None if draw is None else lambda: draw(scaler),
        )

    @property
    def num_samples(self) -> int:
        return self.observations.shape[0]

    @property
    def num_nodes(self) -> int:
        return self.observations.shape[1]

    @cached_property
    def interventional_test(self) -> tuple[InterventionalSample, ...]:
        """Test interventions, standardised scale; empty where the truth cannot be sampled."""
        return () if self.draw_interventional_test is None else tuple(self.draw_interventional_test())

    @cached_property
    def fingerprint(self) -> str:
        """Hash of names, observations, intervention mask and graph; equal iff these are."""
        digest = hashlib.sha256()
        digest.update(repr((self.names, self.observations.shape)).encode())
        digest.update(np.ascontiguousarray(self.observations).tobytes())
        digest.update(np.packbits(self.intervened).tobytes())
        digest.update(b"-" if self.graph is None else np.packbits(self.graph).tobytes())
        return digest.hexdigest()[:16]


def check_shapes(observations: Floats, names: Sequence[str], intervened: Bools) -> None:
    """Raise InvalidInput unless observations (N, d), names (d) and mask (N, d) fit, with N >= 2 and d >= 2."""
    if observations.ndim != 2:
        raise InvalidInput(f"observations: expected a matrix (rows, variables), got {observations.ndim} dimension(s)")
    num_samples, num_nodes = observations.shape
    if num_samples < 2:
        raise InvalidInput(f"observations: expected at least 2 rows, got {num_samples}; add data")
    if num_nodes < 2:
        raise InvalidInput(f"observations: expected at least 2 columns (variables), got {num_nodes}; add variables")
    if len(names) != num_nodes:
        raise InvalidInput(f"names: expected {num_nodes}, one per column, got {len(names)}")
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise InvalidInput(f"names: expected unique variable names, got {repeated[0]!r} more than once; rename one")
    if intervened.shape != observations.shape:
        raise InvalidInput(
            f"intervention mask: expected shape {observations.shape} as the data, got {intervened.shape}"
        )


def check_values(observations: Floats, names: Sequence[str]) -> None:
    """Raise InvalidInput on data that no method can learn from.

    That is a value that is not finite, a column beyond `MAGNITUDES`, a constant column, two columns equal up to scale,
    or two rows alone, where all columns are.
    """
    bad_rows, bad_columns = np.nonzero(~np.isfinite(observations))
    if bad_rows.size:
        row, column = bad_rows[0], bad_columns[0]
        raise InvalidInput(
            f"column {names[column]!r}, data row {row + 1}: expected a finite number, got {observations[row, column]}; "
            "remove or impute such rows"
        )
    scale = np.abs(observations).max(axis=0)
    beyond = np.nonzero((scale > MAGNITUDES[1]) | ((scale < MAGNITUDES[0]) & (scale > 0)))[0]
    if beyond.size:
        raise InvalidInput(
            f"column {names[beyond[0]]!r}: expected a largest magnitude from {MAGNITUDES[0]} to {MAGNITUDES[1]}, "
            f"got {scale[beyond[0]]}; correct the values or use another unit"
        )
    spread = np.ptp(observations, axis=0)
    constant = np.nonzero(spread <= 1e-12 * scale)[0]
    if constant.size:
        raise InvalidInput(f"column {names[constant[0]]!r}: expected values that vary, got a constant; drop the column")
    if observations.shape[0] < 3:
        raise InvalidInput("observations: expected at least 3 rows, as all variables look alike in 2; add data")
    standardised = Scaler.fit(observations).transform(observations)
    for first in range(len(names)):
        for sign in (1.0, -1.0):
            gap = np.abs(standardised[:, first + 1 :] - sign * standardised[:, [first]])
            copies = np.nonzero(np.all(gap < 1e-9, axis=0))[0]
            if copies.size:
                other = names[first + 1 + copies[0]]
                raise InvalidInput(
                    f"columns {names[first]!r} and {other!r}: expected distinct variables, "
                    "got the same values up to scale; drop one of them"
                )


def check_graph(graph: Bools, names: Sequence[str]) -> None:
    """Raise InvalidInput unless `graph` is a (d, d) boolean adjacency of a directed acyclic graph."""
    if graph.shape != (len(names), len(names)) or graph.dtype != np.bool_:
        raise InvalidInput(
            f"graph: expected a boolean matrix of shape ({len(names)}, {len(names)}), got {graph.dtype} {graph.shape}"
        )
    cycle = find_cycle(graph)
    if cycle:
        path = " -> ".join(names[node] for node in [*cycle, cycle[0]])
        raise InvalidInput(f"graph: expected a directed acyclic graph, got the cycle {path}; remove one of its edges")
