from __future__ import annotations

import csv
import json
from datetime import UTC, datetime

import numpy as np
import pytest

from experiments import figure_data
from experiments.expand import Sweep, SweepJob, expand
from experiments.figure_data import planned_jobs
from experiments.figures import main
from experiments.intervals import mean_and_ci95
from experiments.store import ResultStore
from experiments.store_figures import _kind

SEEDS = 3
_METHODS = ("arco_gp", "exact_gp", "ges", "pc/castle")
_ESHD = {"arco_gp": 12.0, "exact_gp": 10.0, "ges": 30.0, "pc": 25.0}


def job(data, method, seed, samples=200):
    overrides = {"data": data, "data.num_samples": str(samples), "method": method, "data.seed": str(seed)}
    return SweepJob(overrides, f"{data} {method} {seed} {samples}")


def sweep(overrides):
    """The jobs of an experiment of four methods, without Hydra, which takes seconds."""
    given = dict(each.split("=", 1) for each in overrides)
    methods = [each for each in given.get("method", ",".join(_METHODS)).split(",") if "/k" not in each]
    jobs = [job(data, method, seed) for data in ("er", "sf") for method in methods for seed in range(SEEDS)]
    return Sweep(jobs, config=None)


def rows(each, eshd, a_aid=0.2, *, run="a", status="ok", fingerprint=None, seconds=2.0):
    """What the store holds of a job."""
    data, method, seed = (each.overrides[key] for key in ("data", "method", "data.seed"))
    row = {
        "run_id": f"{each.job_id}{run}",
        "job_id": each.job_id,
        "status": status,
        "data_name": data,
        "graph_model": data,
        "mechanism": "gp",
        "num_nodes": 20,
        "expected_degree": 2.0,
        "num_samples": int(each.overrides["data.num_samples"]),
        "data_seed": int(seed),
        "data_fingerprint": fingerprint or f"{data}{seed}",
        "method": method.partition("/")[0],
        "method_config": json.dumps({"max_parents": 2} if "gp" in method else {}),
        "method_seed": 0,
        **dict.fromkeys(("data_config", "metrics_config", "package_versions"), "{}"),
        "fit_seconds": seconds,
        "git_commit": "abc",
        "host": "here",
        "started_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    if status != "ok":
        return [row]
    return [{**row, "metric": "eshd", "value": eshd}, {**row, "metric": "a_aid", "value": a_aid}]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store with all jobs of `sweep` but two: GES failed on one data set and was not run on another."""
    monkeypatch.setattr(figure_data, "expand", sweep)
    entries = []
    for each in sweep([]).jobs:
        name = each.overrides["method"].partition("/")[0]
        seed = int(each.overrides["data.seed"])
        if name == "ges" and each.overrides["data"] == "sf" and seed > 0:
            entries += rows(each, 0.0, status="failed") if seed == 1 else []
        else:
            entries += rows(each, _ESHD[name] + seed, None if name == "pc" else 0.2 + 0.01 * seed)
    ResultStore(tmp_path / "store").append(entries)
    return ResultStore(tmp_path / "store")


@pytest.fixture
def draw(store, tmp_path):
    """Draw a figure; its values and facts."""

    def drawn(name, *arguments):
        out = tmp_path / "figures" / name
        assert main([f"name={name}", f"store.path={store.path}", f"out={out}", *arguments]) == 0
        assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert out.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        with out.with_suffix(".csv").open(newline="") as file:
            return list(csv.DictReader(file)), json.loads(out.with_suffix(".json").read_text())

    return drawn


def test_boxes_hold_the_finished_jobs_and_say_how_many(draw):
    values, facts = draw("main_cd")
    assert len(values) == 22
    assert {(row["method"], float(row["eshd"])) for row in values if row["graph"] == "SF"} == {
        *(("ARCO-GP", 12.0 + seed) for seed in range(3)),
        *(("Exact-GP", 10.0 + seed) for seed in range(3)),
        *(("PC", 25.0 + seed) for seed in range(3)),
        ("GES", 30.0),
    }
    boxes = {(box["graph"], box["method"]): box for box in facts["boxes"]}
    expected = {"planned": 3, "finished": 1, "failed": 1, "n_eshd": 1, "n_a_aid": 1}
    assert boxes["SF", "GES"] == {"graph": "SF", "method": "GES", **expected}
    assert boxes["ER", "PC"]["n_eshd"] == 3
    assert boxes["ER", "PC"]["n_a_aid"] == 0
    assert [box["method"] for box in facts["boxes"][:4]] == ["ARCO-GP", "Exact-GP", "GES", "PC"]


def test_methods_that_were_not_computed_are_named(draw):
    _, facts = draw("main_cd")
    assert facts["not_computed"] == ["BAYESDAG", "DAG-GNN", "DDS", "DIBS-GP", "GADGET", "GOLEM", "GRASP", "RESIT"]
    assert "left out: BAYESDAG, DAG-GNN" in facts["caption"]
    assert "22 of 24 jobs finished, 1 failed" in facts["caption"]
    assert "GES 4 of 6" in facts["caption"]


def test_a_figure_is_that_of_its_version_and_the_same_to_the_byte(draw, store, tmp_path):
    folder = tmp_path / "figures"

    def files():
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    draw("main_cd")
    version, first = store.version, files()
    store.append(rows(job("er", "ges", 0), 99.0, run="b"))
    draw("main_cd", f"version={version}")
    assert files() == first
    _, facts = draw("main_cd")
    assert facts["store_version"] == version + 1
    assert files()["main_cd.png"] != first["main_cd.png"]


def test_of_a_job_that_was_run_twice_the_newest_run_counts(store):
    each = job("er", "ges", 0)
    later = [{**row, "started_at": datetime(2026, 1, 2, tzinfo=UTC)} for row in rows(each, 99.0, run="b")]
    store.append(later)
    jobs = planned_jobs("main_cd", store.rows()).set_index("job_id")
    assert jobs.loc[each.job_id, "eshd"] == 99.0
    assert len(jobs) == 24


def test_pairs_are_of_the_same_data(draw):
    values, facts = draw("exact_posterior")
    assert len(values) == 6
    assert {float(row["difference"]) for row in values} == {2.0}
    for row in values:
        assert row["job_id_exact"] == row["job_id"].replace("arco_gp", "exact_gp")
        assert float(row["eshd"]) - float(row["eshd_exact"]) == 2.0
    setting = facts["settings"][0]
    assert (setting["n"], setting["mean_exact"], setting["mean_difference"]) == (3, 11.0, 2.0)
    assert "13.0 on average and the exact posterior 11.0, over 6 pairs" in facts["caption"]


def test_pairs_whose_data_differ_are_left_out(draw, store):
    other = rows(job("er", "arco_gp", 1), 50.0, run="b", fingerprint="other")
    store.append([{**row, "started_at": datetime(2026, 1, 2, tzinfo=UTC)} for row in other])
    values, facts = draw("exact_posterior")
    assert len(values) == 5
    assert facts["pairs_left_out_as_data_differ"] == 1


def test_points_are_means_with_intervals(draw):
    _, facts = draw("accuracy_seconds")
    points = {(point["graph"], point["metric"], point["method"]): point for point in facts["points"]}
    point = points["ER", "eshd", "GES"]
    assert (point["n"], point["mean"], point["mean_seconds"], point["ci95_seconds"]) == (3, 31.0, 2.0, 0.0)
    assert point["ci95"] == pytest.approx(1.96 / np.sqrt(3), abs=1e-6)
    assert points["ER", "a_aid", "PC"]["mean"] is None
    assert points["SF", "eshd", "GES"]["ci95"] is None


def test_an_interval_needs_two_values(store):
    values = planned_jobs("main_cd", store.rows())["eshd"]
    assert np.isnan(mean_and_ci95(values[:0])[0])
    mean, half = mean_and_ci95(values[:1])
    assert mean == 12.0
    assert np.isnan(half)


def test_an_experiment_is_planned_as_the_sweep_runs_it(tmp_path):
    overrides = ["num_models=2", "method=ges,pc/castle"]
    ResultStore(tmp_path / "empty").prepare()
    planned = planned_jobs("main_cd", ResultStore(tmp_path / "empty").rows(), overrides)
    assert list(planned["job_id"]) == [job.job_id for job in expand(["+experiment=main_cd", *overrides]).jobs]
    assert set(planned["status"]) == {"missing"}
    assert list(planned["method"][:3]) == ["GES", "GES", "PC"]
    assert list(planned["graph"][[0, 7]]) == ["ER", "SF"]


def test_what_cannot_be_drawn_is_one_line(store, tmp_path, capsys):
    empty = tmp_path / "empty"
    ResultStore(empty).prepare()
    for arguments, message in [
        (
            ["name=main_cd", f"store.path={empty}"],
            "store.path: expected finished jobs of main_cd, got none; run python",
        ),
        (
            ["name=exact_posterior", f"store.path={empty}"],
            "store.path: expected finished jobs of num_samples, got none",
        ),
        (["name=main_cd", "store.path=nowhere"], "store.path: expected a result store, got 'nowhere'"),
        (["name=main_cd", f"store.path={store.path}", "version=99"], "version: expected 0 to "),
        (["name=main_cd", f"store.path={store.path}", "version=x"], "version: expected a whole number"),
        (["name=main_cd", f"store.path={store.path}", "out=a.txt"], "out: expected a file that ends in .png"),
        (["name=main_cd", f"store.path={store.path}", "run=a"], "run: expected no value, as name=main_cd does not use"),
        (["name=main_cd", f"store.path={store.path}", "out=/proc/a/b"], "out: expected a place that can be written to"),
    ]:
        capsys.readouterr()
        assert main(arguments) == 2, arguments
        err = capsys.readouterr().err
        assert err.startswith(f"error: {message}"), err
        assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("ARCO-GP (per sample)", "Gaussian processes, parent sets marginalised"),
        ("Exact-GP", "Gaussian processes, parent sets marginalised"),
        ("DIBS-GP", "other posteriors over graphs"),
        ("DIBS-GP (per sample)", "other posteriors over graphs"),
        ("GES", "one graph or equivalence class"),
    ],
)
def test_a_variant_is_drawn_as_its_method(name, label):
    assert _kind(name).label == label
