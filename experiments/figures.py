"""Draw a figure from finished runs: `python -m experiments.figures name=causal_effects run=RUN_DIR`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bci.errors import InvalidInput
from bci.settings import check_choice
from experiments.arguments import key_values, whole_number
from experiments.outcome import INVALID, OK, complain, one_line, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments.saved_run import SavedRun

USAGE = """python -m experiments.figures name=NAME run=RUN_DIR [key=value ...]

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

  out         the picture, .png, .pdf or .svg; by default NAME.png in the run directory"""

_DEFAULTS = {"name": "", "run": "", "pairs": "", "out": "", "n": "10000", "seed": "0"}
_ENDINGS = (".png", ".pdf", ".svg")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    if {"-h", "--help"} & set(arguments):
        say(USAGE)
        return OK
    try:
        say("\n".join(map(str, draw(key_values(arguments, _DEFAULTS)))))
    except InvalidInput as error:
        complain(one_line(error))
        return INVALID
    return OK


def draw(settings: dict[str, str]) -> list[Path]:
    """Draw the figure that the settings name; returns the files written.

    Raises:
        InvalidInput: a setting, or a run, that the figure cannot be drawn with.
    """
    name = check_choice("name", settings["name"], tuple(_FIGURES))
    folders = [folder for folder in settings["run"].split(",") if folder]
    if not folders:
        raise InvalidInput("run: expected a run directory, got none; set run=outputs/...")
    out = Path(settings["out"] or Path(folders[0]) / f"{name}.png")
    if out.suffix not in _ENDINGS:
        raise InvalidInput(f"out: expected a file that ends in {', '.join(_ENDINGS)}, got '{out}'; rename it")
    n, seed = whole_number("n", settings["n"], 1), whole_number("seed", settings["seed"], 0)
    return _FIGURES[name](folders, out, pairs=settings["pairs"], n=n, seed=seed)


def _interventional_distributions(folders: Sequence[str], out: Path, *, pairs: str, n: int, seed: int) -> list[Path]:
    from experiments.effects import density_panels
    from experiments.query_pictures import interventional_densities

    runs = _read(folders)
    panels = density_panels(runs, pairs, n, seed)
    title = f"Interventional distributions on {runs[0].data_name}, N = {runs[0].dataset.num_samples}"
    return [_save(interventional_densities(panels, title), out)]


def _causal_effects(folders: Sequence[str], out: Path, *, pairs: str, n: int, seed: int) -> list[Path]:
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
    written = _save(figure, out)
    return [written, write_effects(run.posterior.names, means, deviations, out.with_suffix(".csv"))]


_FIGURES: dict[str, Callable[..., list[Path]]] = {
    "interventional_distributions": _interventional_distributions,
    "causal_effects": _causal_effects,
}


def _read(folders: Sequence[str]) -> list[SavedRun]:
    from experiments.saved_run import SavedRun  # here, as torch takes seconds that a wrong command need not spend

    return [SavedRun.read("run", folder) for folder in folders]


def _save(figure: Figure, out: Path) -> Path:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=150)
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise InvalidInput(
            f"out: expected a place that can be written to, got '{out}' ({reason}); choose another"
        ) from error
    return out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
