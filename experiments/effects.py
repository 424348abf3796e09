"""What figures of causal queries show: samples under chosen interventions, effects of all pairs, and their truth."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset, Floats
from bci.errors import InvalidInput
from bci.randomness import stream
from experiments.interventions import check_name, parse_do, written_do
from experiments.query_pictures import DensityPanel, WeightedValues
from experiments.saved_run import SavedRun

_PANELS = 8
_LONGEST_TITLE = 36
Pair = tuple[str, dict[str, float]]
"""A target and what is set, standardised."""


def density_panels(runs: Sequence[SavedRun], pairs: str, n: int, seed: int) -> list[DensityPanel]:
    """Samples of every target under its intervention, from every run and from the truth.

    Args:
        runs: of one data set.
        pairs: `TARGET|do(...); TARGET|do(...)`, or nothing for those that shift a true mean most.
        n: samples of each.

    Raises:
        InvalidInput: runs of different data or without samples, data without a known truth, or pairs of another form.
    """
    dataset = _same_dataset(runs)
    chosen = _parse_pairs(pairs, dataset.names) if pairs else _largest_shifts(dataset)
    panels = []
    for target, do in chosen:
        place = dataset.names.index(target)
        truth = _true_samples(dataset, do, n, stream(seed, "truth"))[:, place]
        posteriors = {}
        for label, run in zip(_labels(runs), runs, strict=True):
            if not isinstance(run.posterior, GenerativePosterior):
                raise InvalidInput(f"run: expected a method that can be sampled, got {run.method_name}; leave it out")
            samples, weights = run.posterior.sample_interventional(do, n, stream(seed, "query"))
            posteriors[label] = WeightedValues(samples[:, place], weights)
        panels.append(DensityPanel(_panel_title(target, do), target, posteriors, WeightedValues(truth)))
    return panels


def true_effects(run: SavedRun, n: int, seed: int) -> Floats | None:
    """As `bci.effect_matrix` under the true model, (d, d), from `n` samples; None if it is not known any more."""
    try:
        dataset = run.dataset
    except InvalidInput:  # the run stands without its data
        return None
    if dataset.scm is None or dataset.graph is None:
        return None
    effects = np.zeros((dataset.num_nodes, dataset.num_nodes))
    for cause, name in enumerate(dataset.names):
        low, high = (
            _true_samples(dataset, {name: value}, n, stream(seed, "truth")).mean(axis=0) for value in (0.0, 1.0)
        )
        effects[cause] = high - low
    np.fill_diagonal(effects, 0.0)
    return effects


def write_effects(names: Sequence[str], means: Floats, deviations: Floats, path: Path) -> Path:
    """A CSV file with the columns cause, effect, mean, standard_deviation, one row per ordered pair."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["cause", "effect", "mean", "standard_deviation"])
        for i, j in np.argwhere(~np.eye(len(names), dtype=bool)):
            writer.writerow([names[i], names[j], float(means[i, j]), float(deviations[i, j])])
    return path


def _same_dataset(runs: Sequence[SavedRun]) -> Dataset:
    datasets = [run.dataset for run in runs]
    for run, dataset in zip(runs, datasets, strict=True):
        if dataset.fingerprint != datasets[0].fingerprint:
            raise InvalidInput(f"run: expected runs of one data set, got '{run.folder}' with another; drop it")
    return datasets[0]


def _labels(runs: Sequence[SavedRun]) -> list[str]:
    """The methods' names, with the folder where two are the same."""
    methods = [run.method_name for run in runs]
    return [
        method if methods.count(method) == 1 else f"{method} ({run.folder.name})"
        for method, run in zip(methods, runs, strict=True)
    ]


def _panel_title(target: str, do: Mapping[str, float]) -> str:
    rounded = written_do({name: round(value, 2) for name, value in do.items()})
    title = f"{target} | {rounded}"
    return title if len(title) <= _LONGEST_TITLE else f"{target}\n{rounded}"


def _parse_pairs(text: str, names: Sequence[str]) -> list[Pair]:
    pairs = []
    for part in filter(str.strip, text.split(";")):
        target, bar, do = part.rpartition("|")
        if not bar:
            raise InvalidInput(f'pairs: expected "TARGET|do(NAME=VALUE); ...", got {part.strip()!r}')
        pairs.append((check_name("pairs", target.strip(), names), parse_do("pairs", do, names)))
    if not pairs:
        raise InvalidInput('pairs: expected "TARGET|do(NAME=VALUE); ...", got none')
    return pairs


def _largest_shifts(dataset: Dataset) -> list[Pair]:
    """Pairs whose true mean is farthest from that of the training data; every target once before any comes again."""
    best: dict[tuple[str, tuple[int, ...]], tuple[float, Pair]] = {}
    for targets, values, samples in dataset.interventional_test:
        do = {dataset.names[node]: value for node, value in zip(targets, values, strict=True)}
        for node, shift in enumerate(np.abs(samples.mean(axis=0))):
            name = dataset.names[node]
            if node not in targets and shift > best.get((name, targets), (0.0,))[0]:
                best[name, targets] = float(shift), (name, do)
    if not best:
        raise InvalidInput("run: expected data with a known truth, got none; simulate data, for example data=sachs_gp")
    ranked = [pair for _, pair in sorted(best.values(), key=lambda entry: -entry[0])]
    firsts = {target: (target, do) for target, do in reversed(ranked)}
    ordered = [pair for pair in ranked if pair[1] is firsts[pair[0]][1]]
    return (ordered + [pair for pair in ranked if pair not in ordered])[:_PANELS]


def _true_samples(dataset: Dataset, do: Mapping[str, float], n: int, rng: np.random.Generator) -> Floats:
    """`n` samples of the true model, or those of the test intervention that is equal, standardised."""
    nodes = {dataset.names.index(name): value for name, value in do.items()}
    if dataset.scm is not None:
        mean, std = dataset.scaler.mean, dataset.scaler.std
        raw = {node: float(value * std[node] + mean[node]) for node, value in nodes.items()}
        return dataset.scaler.transform(dataset.scm.sample(n, rng, raw))
    for targets, values, samples in dataset.interventional_test:
        if dict(zip(targets, values, strict=True)) == nodes:
            return samples
    raise InvalidInput(f"run: expected data whose true model is known, or a test of {written_do(do)}; simulate data")
