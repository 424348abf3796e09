"""What is left to say when all jobs of a sweep have ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from experiments.outcome import FAILED, OUTCOME, complain


class SweepOutcome(Callback):
    """A Hydra callback that makes a sweep exit with a code other than 0 if one of its jobs did not finish.

    The jobs themselves never raise, so that the others go on, and may run in other processes; what they leave in
    their run directories tells how they ended.
    """

    def on_multirun_end(self, config: DictConfig, **_: object) -> None:
        sweep_dir = Path(config.hydra.sweep.dir)
        statuses = list(_statuses(sweep_dir))
        unfinished = [status for status in statuses if status not in ("ok", "skipped")]
        if unfinished:
            counts = ", ".join(f"{unfinished.count(status)} {status}" for status in sorted(set(unfinished)))
            complain(f"{len(unfinished)} of {len(statuses)} jobs did not finish ({counts}); see {sweep_dir}")
            raise SystemExit(FAILED)


def _statuses(sweep_dir: Path) -> Iterator[str]:
    """The status of every job of a sweep; a job that left none was killed."""
    for config in sorted(sweep_dir.glob("**/.hydra/config.yaml")):
        outcome = config.parent.parent / OUTCOME
        yield json.loads(outcome.read_text(encoding="utf-8"))["status"] if outcome.is_file() else "killed"
