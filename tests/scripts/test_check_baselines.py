from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from experiments.command import CONFIGS
from experiments.job import Job, job_columns
from experiments.store import ResultStore

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("check_baselines", ROOT / "scripts" / "check_baselines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path)


def add_job(store, eshd, *changes, method="pc", graph="sf", seed=0):
    """A stored job of the setting that is compared, some keys changed."""
    setting = ["data.expected_degree=2", "data.num_samples=200", f"data.seed={seed}"]
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("config", overrides=[f"method={method}", f"data={graph}", *setting, *changes])
    columns = job_columns(Job.from_config(config, method, graph)) | {
        "run_id": f"{method} {changes} {seed}",
        "status": "ok",
        "package_versions": "{}",
        "started_at": datetime(2025, 1, 1, tzinfo=UTC),
        "host": "h",
        "fit_seconds": 1.0,
        "peak_memory_mb": 100.0,
    }
    metrics = {"eshd": eshd, "num_edges": 20.0}
    store.append([{**columns, "metric": name, "value": value} for name, value in metrics.items()])


def test_only_jobs_of_the_compared_setting_are_averaged(script, store):
    add_job(store, 40.0)
    add_job(store, 50.0, seed=1)
    for change in ("alpha=0.9", "implementation=castle", "max_conditioning=1"):
        add_job(store, 900.0, f"method.{change}")
    for change in ("data.num_nodes=30", "data.mechanism=linear", "data.noise_variance=0.1", "seed=1"):
        add_job(store, 900.0, change)
    add_job(store, 900.0, seed=2)
    add_job(store, 900.0, graph="er")
    check = next(check for check in script.CHECKS if check.method == "pc" and not check.overrides)
    first = script.report([check], store.rows(), num_seeds=2).iloc[0]
    assert (first["data"], first["jobs"], first["eshd"]) == ("sf degree 2 N 200", 2, 45.0)


def test_implementations_are_told_apart_whatever_the_time_limit(script, store):
    add_job(store, 40.0, "method.timeout_seconds=5")
    add_job(store, 60.0, "method.timeout_seconds=5", "method.implementation=castle")
    checks = [check for check in script.CHECKS if check.method == "pc"]
    table = script.report(checks, store.rows(), num_seeds=1).set_index(["method", "data"])["eshd"]
    assert table["pc", "sf degree 2 N 200"] == 40.0
    assert table["pc castle", "sf degree 2 N 200"] == 60.0
