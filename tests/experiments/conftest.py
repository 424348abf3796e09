"""Jobs on stand-in methods and data, run in the process of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from experiments import run
from experiments.execute import execute


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def config(tmp_path: Path) -> DictConfig:
    """A composed config of a quick job, with its store in the temporary folder."""
    return OmegaConf.create(
        {
            "data": {"_target_": "stand_ins.chain", "num_nodes": 4, "seed": 5, "graph_model": "chain"},
            "method": {"_target_": "stand_ins.RandomDag", "max_parents": 2},
            "metrics": {"names": ["eshd", "auroc", "num_edges"], "num_graphs": 10},
            "seed": 3,
            "store": {"path": str(tmp_path / "store")},
            "force": False,
        }
    )


@pytest.fixture
def run_job(config: DictConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run `config` with some keys changed; its files go to the folder `run` of the temporary folder."""

    def job(changes: dict[str, object] | None = None) -> Ended:
        changed = config.copy()
        for key, value in (changes or {}).items():
            OmegaConf.update(changed, key, value)
        (tmp_path / "run").mkdir(exist_ok=True)
        ended = execute(changed, method_name="random_dag", data_name="chain", run_dir=tmp_path / "run")
        return Ended(ended.code, *capsys.readouterr())

    return job


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run the command line `python -m experiments.run` in the temporary folder, the store in `store`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    own_logging = ["hydra/job_logging=none", "hydra/hydra_logging=none"]  # not the logging of pytest

    def ran(*arguments: str, flag: str = "--run") -> Ended:
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["run.py", *arguments, "store.path=store", *own_logging, flag])
        try:
            run.main()
        except SystemExit as ended:
            return Ended(int(ended.code or 0), *capsys.readouterr())
        return Ended(0, *capsys.readouterr())

    return ran
