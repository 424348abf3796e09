"""Draw a figure from the store or from finished runs: `python -m experiments.figures name=main_cd`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bci.errors import InvalidInput
from bci.settings import check_choice
from experiments.arguments import answered, key_values, path, whole_number, whole_number_if_given
from experiments.export import DEFAULT_STORE
from experiments.figure_files import picture_paths, save_facts, save_pictures, save_values
from experiments.store import ResultStore

if TYPE_CHECKING:
    from experiments.saved_run import SavedRun

USAGE = """python -m experiments.figures name=NAME [store.path=DIR] [version=N] [out=FILE]
python -m experiments.figures name=NAME run=RUN_DIR [key=value ...]

From the store; numbers go to a CSV file beside, what is to be said about them to a JSON file:
  name=main_cd
      box plots of ESHD and A-AID of every method on scale-free and Erdos-Renyi graphs
  name=exact_posterior
      ESHD of arco_gp against exact_gp on the same data: how much of the error is approximate inference
  name=accuracy_seconds
      mean ESHD and A-AID of every method against the seconds of a fit

  store.path  the store (default results/store)
  version     of the store (default the newest)
  out         the pictures (default results/figures/NAME)

From run directories:
  name=interventional_distributions
      posterior against true distributions of variables under interventions, for simulated data
      run     run directories of the same data, separated by commas
      pairs   what to draw, "Erk|do(PKA=1); Akt|do(PKC=-1, PKA=0)", on the standardised scale; if left out the eight
              pairs of the test interventions that shift a true mean most, other targets first
      n       samples per distribution (default 10000)
      seed    of these samples (default 0)

  name=causal_effects
      the average causal effect of every variable on every other, with its uncertainty; numbers go to a CSV file beside
      run     one run directory

  out         the picture (default NAME.png in the run directory)

A picture ends in .png, .pdf or .svg; out=NAME without an ending writes PNG and PDF."""

_RUN_KEYS = {"run": "", "pairs": "", "n": "10000", "seed": "0"}
_STORE_KEYS = {"store.path": DEFAULT_STORE, "version": ""}
_DEFAULTS = {"name": "", "out": "", **_RUN_KEYS, **_STORE_KEYS}
FROM_STORE = ("main_cd", "exact_posterior", "accuracy_seconds")
_PUBLISHED = Path("results/figures")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return answered(arguments, USAGE, lambda given: "\n".join(map(str, draw(key_values(given, _DEFAULTS)))))


def draw(settings: dict[str, str]) -> list[Path]:
    """Draw the figure that the settings name; returns the files written.

    Raises:
        InvalidInput: a setting, or a run, that the figure cannot be drawn with.
    """
    name = check_choice("name", settings["name"], (*FROM_STORE, *_FROM_RUNS))
    others = _RUN_KEYS if name in FROM_STORE else _STORE_KEYS
    for key, default in others.items():
        if settings[key] != default:
            raise InvalidInput(f"{key}: expected no value, as name={name} does not use it; drop it")
    if name not in FROM_STORE:
        return _draw_from_runs(name, settings)
    version = whole_number_if_given("version", settings["version"], 0)
    out = path(settings["out"]) if settings["out"] else _PUBLISHED / name
    return draw_from_store(name, settings["store.path"], version, out)


def draw_from_store(name: str, store: str | Path, version: int | None, out: Path) -> list[Path]:
    """Draw one of `FROM_STORE` from a version of the store, the newest if None; returns the files written.

    Raises:
        InvalidInput: no such store or version, no job to draw, or a place that cannot be written to.
    """
    picture_paths(out)  # before the work
    results = ResultStore(store)
    version = results.version if version is None else version
    rows = results.rows(version)

    from experiments.store_figures import FIGURES

    drawn = FIGURES[name](rows)
    written = save_pictures(drawn.figure, out)
    return [*written, save_values(drawn.values, out), save_facts({**drawn.facts, "store_version": version}, out)]


def _draw_from_runs(name: str, settings: dict[str, str]) -> list[Path]:
    folders = [path(folder) for folder in settings["run"].split(",") if folder]
    if not folders:
        raise InvalidInput("run: expected a run directory, got none; set run=outputs/...")
    out = path(settings["out"]) if settings["out"] else folders[0] / f"{name}.png"
    picture_paths(out)  # before the work
    n, seed = whole_number("n", settings["n"], 1), whole_number("seed", settings["seed"], 0)
    return _FROM_RUNS[name](folders, out, pairs=settings["pairs"], n=n, seed=seed)


def _interventional_distributions(folders: Sequence[Path], out: Path, *, pairs: str, n: int, seed: int) -> list[Path]:
    from experiments.effects import density_panels
    from experiments.query_pictures import interventional_densities

    runs = _read(folders)
    panels = density_panels(runs, pairs, n, seed)
    title = f"Interventional distributions on {runs[0].data_name}, N = {runs[0].dataset.num_samples}"
    written = save_pictures(interventional_densities(panels, title), out)
    if out.suffix:
        return written
    methods = ", ".join(run.method_name for run in runs)
    shown = "; ".join(panel.title for panel in panels)
    caption = (
        f"{title}: kernel density estimates of {n} samples from the posterior of {methods} (solid) and of the true "
        "model (dashed), variables standardised; vertical lines are means."
    )
    facts = {
        "figure": "interventional_distributions",
        "title": "Interventional distributions",
        "caption": caption,
        "alt": f"Posterior against true densities of {shown}.",
        "methods": [run.method_name for run in runs],
        "pairs": [panel.title for panel in panels],
        "n": n,
        "seed": seed,
    }
    return [*written, save_facts(facts, out)]


def _causal_effects(folders: Sequence[Path], out: Path, *, pairs: str, n: int, seed: int) -> list[Path]:
    from bci.effect_matrix import effect_matrix
    from experiments.effects import true_effects, write_effects
    from experiments.query_pictures import effect_heat_map

    if len(folders) > 1 or pairs:
        raise InvalidInput("command line: expected one run and no pairs for name=causal_effects; drop the others")
    run = _read(folders)[0]
    means, deviations = effect_matrix(run.posterior)
    figure = effect_heat_map(
        means,
        deviations,
        run.posterior.names,
        true_effects(run, n, seed),
        title=f"Average causal effects, {run.method_name} on {run.data_name}: "
        "change from do(cause = 0) to do(cause = 1)",
        unit="change in the mean (standard deviations)",
    )
    written = save_pictures(figure, out)
    return [*written, write_effects(run.posterior.names, means, deviations, out.with_suffix(".csv"))]


_FROM_RUNS: dict[str, Callable[..., list[Path]]] = {
    "interventional_distributions": _interventional_distributions,
    "causal_effects": _causal_effects,
}


def _read(folders: Sequence[Path]) -> list[SavedRun]:
    from experiments.saved_run import SavedRun  # here, as torch takes seconds that a wrong command need not spend

    return [SavedRun.read("run", folder) for folder in folders]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
