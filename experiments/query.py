"""Ask a fitted posterior "what if": `python -m experiments.query run=RUN_DIR "do(PKA=1.0)" target=Erk`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bci.errors import InvalidInput
from experiments.arguments import answered, key_values, path, whole_number, yes_or_no
from experiments.interventions import check_name, parse_do, written_do

if TYPE_CHECKING:
    from experiments.saved_run import SavedRun

USAGE = """python -m experiments.query run=RUN_DIR "do(NAME=VALUE, ...)" [target=NAME] [key=value ...]

What the posterior of a run expects if some variables were set to given values.

  run             run directory of a method that answers queries (it holds posterior.npz)
  target          the variable to tell everything about; the means of all variables if left out
  baseline        what to compare with, "do(NAME=VALUE, ...)"; no intervention if left out
  original_scale  true: values and answers in the units of the data; false (default): in standard deviations of
                  the training data from their mean
  n               samples behind standard deviation and quantiles (default 10000)
  seed            of these samples (default 0)"""

_DEFAULTS = {"run": "", "target": "", "baseline": "", "original_scale": "false", "n": "10000", "seed": "0"}
_QUANTILES = (0.05, 0.5, 0.95)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return answered(arguments, USAGE, _answer)


def _answer(arguments: Sequence[str]) -> str:
    asked = [argument for argument in arguments if argument.lstrip().startswith("do")]
    settings = key_values([argument for argument in arguments if argument not in asked], _DEFAULTS)
    if len(asked) != 1:
        raise InvalidInput(
            f'command line: expected one intervention, "do(NAME=VALUE)", got {len(asked)}; '
            "several variables go into one do(...)"
        )
    if not settings["run"]:
        raise InvalidInput("run: expected a run directory, got none; set run=outputs/...")
    n, seed = whole_number("n", settings["n"], 1), whole_number("seed", settings["seed"], 0)
    original_scale = yes_or_no("original_scale", settings["original_scale"])

    from experiments.saved_run import SavedRun  # here, as torch takes seconds that a wrong command need not spend

    run = SavedRun.read("run", path(settings["run"]))
    names = run.posterior.names
    scaler = run.posterior.scaler if original_scale else None
    do = parse_do("do", asked[0], names, scaler)
    baseline = parse_do("baseline", settings["baseline"], names, scaler) if settings["baseline"] else {}
    against = written_do(baseline) if baseline else "no intervention"
    if settings["target"]:
        target = check_name("target", settings["target"], names)
        lines = _about_target(run, target, do, baseline, against, n=n, seed=seed, original_scale=original_scale)
    else:
        lines = _about_all(run, do, baseline, against, original_scale=original_scale)
    scale = "scale of the data" if original_scale else "standardised scale"
    num_graphs = len(run.posterior.query_graphs.weights)
    graphs = "1 graph" if num_graphs == 1 else f"{num_graphs} graphs"
    return "\n".join([f"{run.method_name} on {run.data_name}, {graphs}, {scale}", *lines])


def _about_target(
    run: SavedRun,
    target: str,
    do: dict[str, float],
    baseline: dict[str, float],
    against: str,
    *,
    n: int,
    seed: int,
    original_scale: bool,
) -> list[str]:
    import numpy as np

    from bci.causal_posterior import GenerativePosterior
    from bci.randomness import stream

    posterior = run.posterior
    place = posterior.names.index(target)
    digits = _digits(float(posterior.scaler.std[place]) if original_scale else 1.0)

    def shown(value: float) -> str:
        return f"{value:>10.{digits}f}"

    mean = posterior.interventional_mean(do, original_scale=original_scale)[place]
    effect = posterior.average_causal_effect(target, do, baseline or None, original_scale=original_scale)
    numbers = {"mean": shown(mean)}
    if isinstance(posterior, GenerativePosterior):
        samples, weights = posterior.sample_interventional(do, n, stream(seed, "query"), original_scale=original_scale)
        values = samples[:, place]
        average = weights @ values
        numbers["standard deviation"] = shown(np.sqrt(weights @ (values - average) ** 2))
        quantiles = np.quantile(values, _QUANTILES, weights=weights, method="inverted_cdf")
        numbers |= {
            f"{100 * share:g} % quantile": shown(value) for share, value in zip(_QUANTILES, quantiles, strict=True)
        }
    else:
        numbers["distribution"] = f"{'--':>10}  {run.method_name} gives means only"
    numbers["average causal effect"] = f"{shown(effect.mean)} +- {shown(effect.std).strip()}"
    return [
        f"{target} under {written_do(do)}",
        "",
        *(f"{name:<22}{value}" for name, value in numbers.items()),
        "",
        f"The effect is the change of the mean against {against}; +- is its standard deviation over graphs.",
    ]


def _about_all(
    run: SavedRun, do: dict[str, float], baseline: dict[str, float], against: str, *, original_scale: bool
) -> list[str]:
    means = run.posterior.interventional_means([do, baseline], original_scale=original_scale)
    width = max(map(len, [*run.posterior.names, "variable"])) + 1
    rows = []
    for name, unit, mean, before in zip(run.posterior.names, run.posterior.scaler.std, *means, strict=True):
        digits = _digits(unit if original_scale else 1.0)
        rows.append(f"{name:<{width}}" + "".join(f"{value:>12.{digits}f}" for value in (mean, before, mean - before)))
    columns = ["mean", "baseline" if baseline else "no do", "change"]
    header = f"{'variable':<{width}}" + "".join(f"{column:>12}" for column in columns)
    return [f"means under {written_do(do)}, against {against}", "", header, *rows]


def _digits(unit: float) -> int:
    """Decimals that show a thousandth of the unit."""
    return max(0, 3 - math.floor(math.log10(unit)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
