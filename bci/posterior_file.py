"""A causal posterior as a file: everything its queries need, in one NumPy archive (.npz) without pickled objects.

`np.load(path, allow_pickle=False)` reads it without this library. Members, for d variables, N rows and g query graphs:

| member | type, shape | what it is |
|---|---|---|
| `header` | text | JSON: `format` "bci-posterior", `version` 1, `kind` "gp" or "linear", `names` (d), `graph_kind` |
| `edge_probabilities` | float64 (d, d) | row causes column |
| `graphs` | bool (g, d, d) | the DAGs that queries average over, row causes column |
| `weights` | float64 (g) | their weights, summing to one |
| `scaler_mean`, `scaler_std` | float64 (d) | of the raw training data |

Of kind "gp" also `seed` and `mean_samples` in the header (whole numbers: of the random numbers behind means), and

| member | type, shape | what it is |
|---|---|---|
| `observations` | float64 (N, d) | training rows, standardised |
| `intervened` | bool (N, d) | true where the value was set by an intervention |
| `family_nodes` | int64 (f) | the nodes of the f families with parents that occur in `graphs` |
| `family_parents` | bool (f, d) | their parents |
| `family_parameters` | float64 (f, 4) | logarithms of lengthscale, gamma, outputscale and noise variance |

Of kind "linear" instead `coefficients`, float64 (g, d, d), weights of the edges in every graph, row causes column, and
`means`, float64 (d), of the variables without intervention; both standardised. A later version that an older library
cannot read has a higher `version`.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard, cast, get_args

import numpy as np
from numpy.typing import NDArray

from bci.causal_posterior import MOST_SAMPLES, CausalPosterior, GenerativePosterior
from bci.dataset import Bools, Floats, Scaler
from bci.errors import InvalidInput
from bci.graphs import find_cycle
from bci.linear_posterior import LinearPosterior
from bci.posterior import GraphKind, Posterior, WeightedGraphs
from bci.predictive import Family, GPMechanisms, families
from bci.replacing import replacing

FORMAT, VERSION = "bci-posterior", 1

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class StoredStructure(Posterior):
    """The graph posterior that a file holds: edge probabilities, and the query graphs for samples."""

    probabilities: Floats
    graphs: WeightedGraphs
    graph_kind: GraphKind = "dag"
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def edge_probabilities(self) -> Floats:
        return self.probabilities

    def sample_graphs(self, n: int, rng: np.random.Generator) -> WeightedGraphs:  # noqa: ARG002
        """All stored graphs with their weights, whatever `n`."""
        return self.graphs


def save_posterior(posterior: CausalPosterior, path: str | Path) -> None:
    """Write a posterior to a file, which is replaced in one step if it is there.

    The loaded posterior gives the same answers to queries, bit for bit at the same seeds. Diagnostics are left out, as
    are graphs other than those that queries average over.

    Raises:
        TypeError: not a posterior that `can_be_saved`.
        OSError: the file cannot be written.
    """
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(posterior.names),
        "graph_kind": posterior.graph_kind,
    }
    graphs, weights = posterior.query_graphs
    arrays: Arrays = {
        "edge_probabilities": posterior.edge_probabilities,
        "graphs": graphs,
        "weights": weights,
        "scaler_mean": posterior.scaler.mean,
        "scaler_std": posterior.scaler.std,
    }
    if isinstance(posterior, LinearPosterior):
        header["kind"] = "linear"
        arrays |= {"coefficients": posterior.coefficients, "means": posterior.means}
    elif isinstance(posterior, GenerativePosterior) and isinstance(posterior.mechanisms, GPMechanisms):
        header |= {"kind": "gp", "seed": int(posterior.seed), "mean_samples": int(posterior.mean_samples)}
        arrays |= _of_mechanisms(posterior.mechanisms, graphs)
    else:
        raise TypeError(f"expected a posterior with linear or GP mechanisms, got a {type(posterior).__name__}")
    _write(Path(path), {"header": np.array(json.dumps(header)), **arrays})


def can_be_saved(posterior: Posterior) -> TypeGuard[CausalPosterior]:
    """Whether a posterior answers queries, with mechanisms of a kind that has its place in the file."""
    return isinstance(posterior, LinearPosterior) or (
        isinstance(posterior, GenerativePosterior) and isinstance(posterior.mechanisms, GPMechanisms)
    )


def load_posterior(path: str | Path) -> CausalPosterior:
    """The posterior that `save_posterior` wrote.

    Raises:
        InvalidInput: no such file, not a posterior, damaged, or of a version this library does not know.
    """
    path = Path(path)
    arrays = _read(path)
    header = _header(path, arrays)
    part = _Reader(path, arrays)
    try:
        names, kind = tuple(map(str, header["names"])), header["kind"]
        d = len(names)
        graphs = WeightedGraphs(part.take("graphs", np.bool_, None, d, d), part.take("weights", np.float64, None))
        structure = StoredStructure(part.take("edge_probabilities", np.float64, d, d), graphs, header["graph_kind"])
        scaler = Scaler(part.take("scaler_mean", np.float64, d), part.take("scaler_std", np.float64, d))
        part.check(len(graphs.graphs) == len(graphs.weights) > 0, "as many weights as graphs")
        part.check(bool(np.isclose(graphs.weights.sum(), 1.0) and graphs.weights.min() >= 0), "weights that sum to one")
        part.check(bool((scaler.std > 0).all()), "positive standard deviations")
        part.check(isinstance(header["names"], list) and len(set(names)) == d, "unique names")
        part.check(header["graph_kind"] in get_args(GraphKind), "a known kind of graph")
        part.check(not any(find_cycle(graph) for graph in graphs.graphs), "graphs without cycles")
        if kind == "linear":
            coefficients = part.take("coefficients", np.float64, len(graphs.weights), d, d)
            return LinearPosterior(structure, graphs, names, scaler, coefficients, part.take("means", np.float64, d))
        part.check(kind == "gp", "a kind gp or linear")
        mechanisms = _mechanisms(part, graphs.graphs)
        seed, mean_samples = int(header["seed"]), int(header["mean_samples"])
        part.check(seed >= 0 and 1 <= mean_samples <= MOST_SAMPLES, "a seed and a number of samples in range")
        return GenerativePosterior(structure, graphs, names, scaler, mechanisms, seed, mean_samples)
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"{error} is missing or of a wrong type") from error


def _of_mechanisms(mechanisms: GPMechanisms, graphs: Bools) -> Arrays:
    """The data and the hyper-parameters of the families that occur."""
    found = sorted({family for graph in graphs for family in families(graph) if family[1]})
    parents = np.zeros((len(found), graphs.shape[1]), dtype=bool)
    parameters = np.zeros((len(found), 4))
    for number, family in enumerate(found):
        parents[number, list(family[1])] = True
        parameters[number] = mechanisms.hyperparameters[family]
    return {
        "observations": mechanisms.observations,
        "intervened": mechanisms.intervened,
        "family_nodes": np.array([node for node, _ in found], dtype=np.int64),
        "family_parents": parents,
        "family_parameters": parameters,
    }


def _mechanisms(part: _Reader, graphs: Bools) -> GPMechanisms:
    d = graphs.shape[1]
    observations = part.take("observations", np.float64, None, d)
    intervened = part.take("intervened", np.bool_, len(observations), d)
    nodes = part.take("family_nodes", np.int64, None)
    parents = part.take("family_parents", np.bool_, len(nodes), d)
    parameters = part.take("family_parameters", np.float64, len(nodes), 4)
    known: dict[Family, Floats] = {
        (int(node), tuple(np.flatnonzero(row).tolist())): values
        for node, row, values in zip(nodes, parents, parameters, strict=True)
    }
    wanted = {family for graph in graphs for family in families(graph) if family[1]}
    part.check(bool(((~intervened).sum(axis=0) >= 2).all()), "two rows without intervention on each variable")
    part.check(wanted <= known.keys(), "hyper-parameters of every family in the graphs")
    return GPMechanisms(observations, intervened, known)


@dataclass(frozen=True, eq=False)
class _Reader:
    """Members of a file, with their types and shapes checked."""

    path: Path
    arrays: Arrays

    def take(self, member: str, kind: type[Any], *shape: int | None) -> NDArray[Any]:
        """A member; None in the shape is any number."""
        array = self.arrays[member]
        fits = array.ndim == len(shape) and all(
            wanted in (None, got) for wanted, got in zip(shape, array.shape, strict=True)
        )
        self.check(array.dtype == kind and fits, f"{member} as documented, not {array.dtype} {array.shape}")
        self.check(bool(np.isfinite(array).all()), f"finite {member}")
        return array

    def check(self, holds: bool, expected: str) -> None:
        if not holds:
            raise _damaged(self.path, f"expected {expected}")


def _header(path: Path, arrays: Arrays) -> dict[str, Any]:
    try:
        header = json.loads(str(arrays["header"]))
        name, version = header["format"], header["version"]
    except (KeyError, TypeError, ValueError, RecursionError):
        name, version = None, None
    if name != FORMAT or not isinstance(version, int) or version < 1:
        raise InvalidInput(f"{path}: expected a saved posterior, got another file; choose a posterior.npz")
    if version > VERSION:
        raise InvalidInput(
            f"{path}: expected a posterior of format version {VERSION} or older, got {version}; update this library"
        )
    return cast(dict[str, Any], header)


def _read(path: Path) -> Arrays:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("not an archive")
            return {member: archive[member] for member in archive.files}
    except OSError as error:
        reason = error.strerror or "not readable"
        raise InvalidInput(f"{path}: expected a saved posterior that can be read, got none ({reason})") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, MemoryError) as error:
        raise _damaged(path, " ".join(str(error).split()) or type(error).__name__) from error


def _write(path: Path, arrays: Arrays) -> None:
    with replacing(path) as complete, complete.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # not the argument that some versions have


def _damaged(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(f"{path}: expected a saved posterior, got a damaged or other file ({reason}); save it again")
