from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bci.posterior_file import load_posterior
from experiments.query import main
from experiments.store import ResultStore


@pytest.fixture
def gp_run(run_job, tmp_path):
    """The run directory of a job with a method that can be sampled; a chain X0 -> X1 -> X2 -> X3."""
    assert run_job({"method": {"_target_": "stand_ins.Queried"}}).code == 0
    return tmp_path / "run"


@pytest.fixture
def linear_run(run_job, tmp_path):
    assert run_job({"method": {"_target_": "stand_ins.Queried", "linear": True}}).code == 0
    return tmp_path / "run"


def ask(capsys, *arguments):
    code = main(arguments)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def values(out):
    """The numbers of an answer by their labels."""
    return {
        line[:22].strip(): line[22:].split() for line in out.splitlines() if line[:22].strip() and line[22:].strip()
    }


def test_a_job_whose_method_answers_queries_saves_its_posterior(gp_run):
    posterior = load_posterior(gp_run / "posterior.npz")
    assert posterior.names == ("X0", "X1", "X2", "X3")


def test_a_job_whose_method_does_not_saves_none(run_job, tmp_path):
    run_job()
    assert not (tmp_path / "run" / "posterior.npz").exists()


def test_a_target_gets_its_distribution_and_effect(gp_run, capsys):
    answer = values(ask(capsys, f"run={gp_run}", "do(X1=1.0)", "target=X2", "n=5000"))
    posterior = load_posterior(gp_run / "posterior.npz")
    samples, weights = posterior.sample_interventional({"X1": 1.0}, 50_000, np.random.default_rng(9))
    order = np.argsort(samples[:, 2])
    quantiles = np.interp([0.05, 0.5, 0.95], np.cumsum(weights[order]), samples[order, 2])
    assert float(answer["mean"][0]) == pytest.approx(posterior.interventional_mean({"X1": 1.0})[2], abs=6e-4)
    deviation = np.sqrt(np.cov(samples[:, 2], aweights=weights))
    assert float(answer["standard deviation"][0]) == pytest.approx(deviation, abs=0.05)
    for label, quantile in zip(("5 %", "50 %", "95 %"), quantiles, strict=True):
        assert float(answer[f"{label} quantile"][0]) == pytest.approx(quantile, abs=0.08)
    effect = posterior.average_causal_effect("X2", {"X1": 1.0})
    mean, sign, std = answer["average causal effect"]
    assert sign == "+-"
    assert [float(mean), float(std)] == pytest.approx([effect.mean, effect.std], abs=6e-4)
    assert effect.std > 0.01


def test_answers_can_be_on_the_scale_of_the_data_and_against_a_baseline(gp_run, capsys):
    out = ask(
        capsys, "original_scale=true", "target=X3", f"run={gp_run}", "do(X1=5, X2=-4)", "baseline=do(X2=3)", "n=100"
    )
    posterior = load_posterior(gp_run / "posterior.npz")
    effect = posterior.average_causal_effect("X3", {"X1": 5, "X2": -4}, {"X2": 3}, original_scale=True)
    assert float(values(out)["average causal effect"][0]) == pytest.approx(effect.mean, abs=6e-3)
    assert "scale of the data" in out
    assert "X3 under do(X1=5, X2=-4)" in out
    assert "against do(X2=3)" in out


def test_without_a_target_all_means_are_told(gp_run, capsys):
    out = ask(capsys, f"run={gp_run}", "do(X1=1.0)")
    posterior = load_posterior(gp_run / "posterior.npz")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines()[-4:])
    means = posterior.interventional_means([{"X1": 1.0}, {}])
    assert list(rows) == list(posterior.names)
    for name, (mean, before) in zip(rows, means.T, strict=True):
        shown = [float(value) for value in rows[name].split()]
        assert shown == pytest.approx([mean, before, mean - before], abs=6e-4)


def test_a_method_with_means_only_says_so(linear_run, capsys):
    answer = values(ask(capsys, f"run={linear_run}", "do(X1=1.0)", "target=X2"))
    assert "quantile" not in "".join(answer)
    assert answer["distribution"][0] == "--"
    assert float(answer["mean"][0]) != 0


def test_the_same_question_has_the_same_answer(gp_run, capsys):
    question = (f"run={gp_run}", "do(X1=1.0)", "target=X2", "n=100")
    assert ask(capsys, *question) == ask(capsys, *question)
    assert ask(capsys, *question) != ask(capsys, *question, "seed=1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run=run"], 'command line: expected one intervention, "do(NAME=VALUE)", got 0'),
        (["run=run", "do(X1=1)", "do(X2=1)"], 'command line: expected one intervention, "do(NAME=VALUE)", got 2'),
        (["run=run", "do(X1)"], "do: expected do(NAME=VALUE)"),
        (["run=run", "do(X9=1)"], "do: expected one of X0, X1, X2, X3, got 'X9'"),
        (["run=run", "do(X1=1)", "target=X9"], "target: expected one of X0, X1, X2, X3, got 'X9'"),
        (["run=run", "do(X1=1)", "baseline=X2"], "baseline: expected do(NAME=VALUE)"),
        (["run=run", "do(X0=1e308)", "target=X3"], "do: expected a value within 1,000,000 standard deviations"),
        (["run=run", "do(X0=1)", "baseline=do(X0=1e308)"], "baseline: expected a value within 1,000,000 standard"),
        (["run=run", "do(X0=1e308)", "original_scale=true"], "do: expected a value within 1,000,000 standard"),
        (["run=run", "do(X1=1)", "colour=red"], "command line: expected run=..., target=..., "),
        (["run=run", "do(X1=1)", "target=X1", "target=X2"], "target: expected one value"),
        (["run=run", "do(X1=1)", "n=0"], "n: expected a whole number of at least 1, got '0'"),
        (["run=run", "do(X1=1)", "seed=-1"], "seed: expected a whole number of at least 0, got '-1'"),
        (["run=run", "do(X1=1)", "original_scale=yes"], "original_scale: expected true or false, got 'yes'"),
        (["do(X1=1)"], "run: expected a run directory, got none"),
        (["run=nowhere", "do(X1=1)"], "run: expected a run directory, got 'nowhere' (no such folder)"),
        (["run=.", "do(X1=1)"], "run: expected a run directory with posterior.npz, got '.' without one"),
        (["run=broken", "do(X1=1)"], "broken/posterior.npz: expected a saved posterior"),
    ],
)
@pytest.mark.usefixtures("gp_run")
def test_a_wrong_question_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "posterior.npz").write_bytes(b"PK")
    capsys.readouterr()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {message}")
    assert len(err.splitlines()) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("run", ["gp_run", "linear_run"])
def test_the_farthest_value_has_a_finite_answer(request, capsys, run):
    folder = request.getfixturevalue(run)
    answer = values(ask(capsys, f"run={folder}", "do(X0=1e6)", "target=X3", "n=100"))
    assert np.isfinite(float(answer["mean"][0]))


def test_the_directory_of_a_job_that_was_skipped_is_told(run_job, tmp_path, capsys):
    assert run_job({"method": {"_target_": "stand_ins.Queried"}}).code == 0
    (tmp_path / "run").rename(tmp_path / "earlier")
    assert "skipped" in run_job({"method": {"_target_": "stand_ins.Queried"}}).out
    job_id = ResultStore(tmp_path / "store").rows()["job_id"][0]
    assert main([f"run={tmp_path / 'run'}", "do(X1=1)"]) == 2
    assert capsys.readouterr().err == (
        f"error: run: expected a run directory with posterior.npz, got '{tmp_path / 'run'}', where job {job_id} was "
        "skipped; name the directory of its earlier run, or run it again with force=true\n"
    )
    assert main([f"run={tmp_path / 'earlier'}", "do(X1=1)"]) == 0


def test_help_tells_the_usage(capsys):
    assert "baseline" in ask(capsys, "--help")


def test_it_starts_without_torch():
    code = "import sys, experiments.query, experiments.figures; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
