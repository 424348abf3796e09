from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiments import status
from experiments.expand import expand
from experiments.store import ResultStore

SWEEP = ["data=er,sf", "method=ges,empty", "data.seed=range(3)"]


@pytest.fixture
def ask(tmp_path, capsys):
    def asked(*arguments):
        code = status.main([*arguments, f"store.path={tmp_path / 'store'}"])
        return code, *capsys.readouterr()

    return asked


@pytest.fixture
def stored(tmp_path):
    """Append a row of a job of the sweep, given by its number."""
    ids = [job.job_id for job in expand(SWEEP).jobs]

    def store(number, ended, run="a"):
        row = {
            "run_id": f"{number}{run}",
            "job_id": ids[number],
            "status": ended,
            "error": None if ended == "ok" else f"why {number}",
            **dict.fromkeys(("data_name", "method", "host"), "x"),
            **dict.fromkeys(("data_config", "method_config", "metrics_config", "package_versions"), "{}"),
            "method_seed": 0,
            "started_at": datetime.now(UTC),
        }
        ResultStore(tmp_path / "store").append([row])

    return store


def counts(out):
    return [line.split() for line in out.splitlines()]


def test_without_a_store_all_jobs_are_missing(ask):
    code, out, err = ask(*SWEEP)
    assert (code, err) == (1, "")
    assert counts(out)[1:] == [
        [f"data={data}", f"method={method}", "3", "0", "0", "3"] for data in ("er", "sf") for method in ("ges", "empty")
    ] + [["all", "12", "0", "0", "12"]]


def test_done_failed_and_missing_jobs_are_told_apart(ask, stored):
    stored(0, "ok")
    stored(1, "failed")
    stored(2, "timeout", "a")
    stored(2, "ok", "b")
    stored(3, "invalid")
    code, out, _ = ask(*SWEEP)
    assert code == 1
    assert counts(out)[1:3] == [
        ["data=er", "method=ges", "3", "2", "1", "0"],
        ["data=er", "method=empty", "3", "0", "1", "2"],
    ]
    assert counts(out)[5] == ["all", "12", "2", "2", "8"]
    assert sorted(line.partition(": ")[2] for line in out.splitlines()[6:]) == ["failed: why 1", "invalid: why 3"]


def test_a_job_that_failed_after_it_was_done_is_done(ask, stored):
    stored(0, "ok", "a")
    stored(0, "failed", "b")
    assert counts(ask(*SWEEP)[1])[1] == ["data=er", "method=ges", "3", "1", "0", "2"]


def test_a_job_whose_data_cannot_be_read_does_not_hide_the_others(ask, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n2,3\n")
    paths = f"data.path={tmp_path / 'data.csv'},{tmp_path / 'nope.csv'}"
    code, out, err = ask("data=csv", paths, "method=ges", "seed=0,1")
    assert (code, err) == (1, "")
    assert counts(out)[1:4] == [
        [f"data.path={tmp_path / 'data.csv'}", "2", "0", "0", "2"],
        [f"data.path={tmp_path / 'nope.csv'}", "2", "0", "2", "0"],
        ["all", "4", "0", "2", "2"],
    ]
    reason = f"data.path: expected a file that can be read, got '{tmp_path / 'nope.csv'}' (No such file or directory)"
    refused = f"data.path={tmp_path / 'nope.csv'}: refused: {reason}; check the path"
    assert out.splitlines()[4:] == [refused]


def test_a_sweep_that_is_done_ends_with_code_0(ask, stored):
    for number in range(12):
        stored(number, "ok")
    code, out, _ = ask(*SWEEP)
    assert code == 0
    assert counts(out)[5] == ["all", "12", "12", "0", "0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["method=nope"], "method: expected one of "),
        (["data=er", "data.foo=1"], "data.foo: unknown key"),
        (["+experiment=nope"], "experiment: expected one of "),
        (["data=csv"], "data.path: expected a value, got none"),
        (["+experiment=degree_4", "num_models=1.5"], "num_models: expected a whole number of at least 1, got '1.5'"),
        (["+experiment=degree_4", "num_models=0"], "num_models: expected a whole number of at least 1, got '0'"),
    ],
)
def test_overrides_that_cannot_be_used_are_one_line(ask, arguments, message):
    code, out, err = ask(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert len(err.splitlines()) == 1


def test_a_store_that_cannot_be_read_is_named(ask, tmp_path, monkeypatch):
    (tmp_path / "store").mkdir()

    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    code, out, err = ask("data=er", "method=ges")
    assert (code, out) == (2, "")
    store = tmp_path / "store"
    assert err.startswith(
        f"error: store.path: expected a result store that can be read, got '{store}' (Permission denied);"
    )


def test_a_folder_of_a_sweep_stands_for_its_overrides(tmp_path, capsys):
    overrides = [*SWEEP, f"store.path={tmp_path / 'store'}"]
    text = "hydra:\n  overrides:\n    task:\n" + "".join(f"    - {each}\n" for each in overrides)
    (tmp_path / "multirun.yaml").write_text(text)
    assert status.main([str(tmp_path)]) == 1
    assert counts(capsys.readouterr().out)[-1] == ["all", "12", "0", "0", "12"]


def test_a_folder_without_a_sweep_is_one_line(tmp_path, capsys):
    assert status.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: command line: expected overrides (key=value) or the folder")
