from __future__ import annotations

import csv
import json
import shutil
import struct

import numpy as np
import pytest
from omegaconf import OmegaConf

from bci.effect_matrix import effect_matrix
from bci.errors import InvalidInput
from experiments.effects import density_panels, true_effects
from experiments.figures import main
from experiments.saved_run import SavedRun

DATA = {
    "_target_": "bci.data.simulate.simulated_dataset",
    "graph_model": "er",
    "num_nodes": 4,
    "expected_degree": 1.5,
    "mechanism": "linear",
    "num_samples": 60,
    "seed": 1,
    "interventional_test": {"values_per_node": 2, "num_samples": 50},
}


@pytest.fixture
def make_run(config, run_job, tmp_path):
    """Run a job in a folder of its own, with the config that Hydra leaves behind."""

    def made(name, data=DATA, **method):
        config.data = data
        config.method = {"_target_": "stand_ins.Queried", **method}
        assert run_job({"force": True}).code == 0
        hydra = tmp_path / "run" / ".hydra"
        hydra.mkdir()
        OmegaConf.save(config, hydra / "config.yaml")
        choices = {"method": name, "data": "er"}
        OmegaConf.save({"hydra": {"runtime": {"choices": choices}}}, hydra / "hydra.yaml")
        return shutil.move(tmp_path / "run", tmp_path / name)

    return made


def size(path):
    """Width and height of a PNG file."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    return struct.unpack(">II", content[16:24])


def test_distributions_are_drawn_for_pairs_of_choice(make_run, tmp_path, capsys):
    run = make_run("arco_gp")
    capsys.readouterr()
    pairs = "pairs=X1|do(X0=0.5); X3|do(X1=-1, X2=0.25)"
    assert main(["name=interventional_distributions", f"run={run}", pairs, "n=200"]) == 0
    picture = tmp_path / "arco_gp" / "interventional_distributions.png"
    assert capsys.readouterr().out == f"{picture}\n"
    assert min(size(picture)) > 200
    assert picture.stat().st_size > 10_000


def test_several_methods_are_drawn_into_one_picture(make_run, tmp_path):
    runs = [SavedRun.read("run", make_run(name)) for name in ("arco_gp", "exact_gp")]
    panels = density_panels(runs, "X1|do(X0=0.5)", 100, 0)
    assert [list(panel.posteriors) for panel in panels] == [["arco_gp", "exact_gp"]]
    out = tmp_path / "both.pdf"
    folders = ",".join(str(run.folder) for run in runs)
    assert main(["name=interventional_distributions", f"run={folders}", f"out={out}", "n=100"]) == 0
    assert out.read_bytes().startswith(b"%PDF")


def test_a_picture_without_an_ending_is_published_as_png_and_pdf_with_its_caption(make_run, tmp_path, capsys):
    folder, out = make_run("arco_gp"), tmp_path / "published" / "densities"
    arguments = ["name=interventional_distributions", f"run={folder}", "pairs=X1|do(X0=0.5)", f"out={out}", "n=100"]
    capsys.readouterr()
    assert main(arguments) == 0
    paths = [out.with_suffix(ending) for ending in (".png", ".pdf", ".json")]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in paths]
    first = [path.read_bytes() for path in paths]
    facts = json.loads(first[2])
    assert "arco_gp" in facts["caption"]
    assert facts["pairs"] == ["X1 | do(X0=0.5)"]
    assert main(arguments) == 0
    assert [path.read_bytes() for path in paths] == first


def test_the_truth_is_that_of_the_model_on_the_standardised_scale(make_run):
    run = SavedRun.read("run", make_run("arco_gp"))
    dataset = run.dataset
    targets, values, samples = dataset.interventional_test[0]
    do = ", ".join(f"{dataset.names[node]}={value}" for node, value in zip(targets, values, strict=True))
    for node, name in enumerate(dataset.names):
        (panel,) = density_panels([run], f"{name}|do({do})", 4000, 0)
        assert panel.truth.mean == pytest.approx(samples[:, node].mean(), abs=0.4)
        assert panel.truth.values.std() == pytest.approx(samples[:, node].std(), abs=0.3)
        expected = run.posterior.interventional_mean(dict(zip(targets, values, strict=True)))[node]
        assert panel.posteriors["arco_gp"].mean == pytest.approx(expected, abs=0.1)


def test_pairs_left_out_are_those_of_the_largest_true_shifts(make_run):
    run = SavedRun.read("run", make_run("arco_gp"))
    panels = density_panels([run], "", 50, 0)
    largest = max(
        np.delete(np.abs(samples.mean(axis=0)), targets).max()
        for targets, _, samples in run.dataset.interventional_test
    )
    assert 1 <= len(panels) <= 8
    assert abs(panels[0].truth.mean) == pytest.approx(largest, abs=0.5)
    targets = [panel.variable for panel in panels]
    distinct = len(set(targets))
    assert len(set(targets[:distinct])) == distinct


def test_effects_of_all_pairs_are_drawn_and_written(make_run, tmp_path, capsys):
    folder = make_run("arco_gp")
    capsys.readouterr()
    assert main(["name=causal_effects", f"run={folder}"]) == 0
    picture = tmp_path / "arco_gp" / "causal_effects.png"
    assert capsys.readouterr().out == f"{picture}\n{picture.with_suffix('.csv')}\n"
    assert min(size(picture)) > 200
    with picture.with_suffix(".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    run = SavedRun.read("run", folder)
    mean, std = effect_matrix(run.posterior)
    for row in rows:
        i, j = run.posterior.names.index(row["cause"]), run.posterior.names.index(row["effect"])
        assert float(row["mean"]) == mean[i, j]
        assert float(row["standard_deviation"]) == std[i, j]


def test_true_effects_of_a_linear_model_are_sums_over_paths(make_run):
    run = SavedRun.read("run", make_run("arco_gp"))
    scm, std = run.dataset.scm, run.dataset.scaler.std
    effects = true_effects(run, 50, 0)
    slopes = np.zeros((4, 4))
    for node, mechanism in enumerate(scm.mechanisms):
        parents = np.flatnonzero(scm.graph[:, node])
        for place, parent in enumerate(parents):
            unit = np.eye(len(parents))[[place]]
            slopes[parent, node] = (mechanism(unit) - mechanism(0 * unit))[0]
    total = np.linalg.inv(np.eye(4) - slopes) - np.eye(4)
    np.testing.assert_allclose(effects, total * std[:, None] / std[None, :], atol=1e-9)


def test_effects_are_drawn_without_a_truth_and_of_means_alone(make_run, tmp_path):
    data = {"_target_": "stand_ins.chain", "with_truth": False}
    folder = make_run("beeps", data, linear=True)
    assert main(["name=causal_effects", f"run={folder}", f"out={tmp_path / 'new' / 'effects.svg'}"]) == 0
    assert "<svg" in (tmp_path / "new" / "effects.svg").read_text()
    (tmp_path / "beeps" / ".hydra" / "config.yaml").unlink()
    assert main(["name=causal_effects", f"run={folder}"]) == 0


def test_what_cannot_be_drawn_is_one_line(make_run, tmp_path, monkeypatch, capsys):
    make_run("good")
    make_run("means", linear=True)
    make_run("other", DATA | {"seed": 2})
    make_run("real", {"_target_": "stand_ins.chain", "with_truth": False})
    monkeypatch.chdir(tmp_path)
    distributions = "name=interventional_distributions"
    for arguments, message in [
        (["run=good"], "name: expected one of main_cd, exact_posterior, accuracy_seconds, interventional_di"),
        ([distributions], "run: expected a run directory, got none"),
        ([distributions, "run=nowhere"], "run: expected a run directory, got 'nowhere'"),
        ([distributions, "run=means", "n=10"], "run: expected a method that can be sampled, got means"),
        ([distributions, "run=good,other"], "run: expected runs of one data set, got 'other' with another"),
        ([distributions, "run=real"], "run: expected data with a known truth"),
        ([distributions, "run=real", "pairs=X1|do(X0=1)"], "run: expected data whose true model is known"),
        ([distributions, "run=good", "pairs=X1"], "pairs: expected \"TARGET|do(NAME=VALUE); ...\", got 'X1'"),
        ([distributions, "run=good", "pairs=;"], 'pairs: expected "TARGET|do(NAME=VALUE); ...", got none'),
        ([distributions, "run=good", "pairs=X9|do(X0=1)"], "pairs: expected one of X0, X1, X2, X3, got 'X9'"),
        ([distributions, "run=good", "out=a.txt"], "out: expected a file that ends in .png, .pdf, .svg, got 'a.txt'"),
        ([distributions, "run=good", "n=10", "out=/proc/a.png"], "out: expected a place that can be written to"),
        (["name=causal_effects", "run=good,other"], "command line: expected one run and no pairs"),
        (["name=causal_effects", "run=good", "version=1"], "version: expected no value, as name=causal_effects does"),
    ]:
        capsys.readouterr()
        assert main(arguments) == 2, arguments
        err = capsys.readouterr().err
        assert err.startswith(f"error: {message}")
        assert len(err.splitlines()) == 1


def test_a_config_that_is_none_is_one_line(make_run):
    folder = make_run("arco_gp")
    for content in ("a: [", "[1, 2]", "data: {_target_: stand_ins.chain, num_nodes: 3}"):
        (folder / ".hydra" / "config.yaml").write_text(content)
        with pytest.raises(InvalidInput) as caught:
            SavedRun.read("run", folder).dataset  # noqa: B018
        assert str(folder) in str(caught.value)


def test_help_tells_the_usage(capsys):
    assert main(["-h"]) == 0
    assert "pairs" in capsys.readouterr().out
