from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell import buffered

from experiments import export, figures, html_report, query, status, tables
from experiments.arguments import answered, path
from experiments.store import __main__ as store

INTERRUPTED = {
    "tables": (tables, "build", ["name=sachs"]),
    "figures": (figures, "draw", ["name=main_cd"]),
    "export": (export, "export", ["out=rows.csv"]),
    "html_report": (html_report, "write_report", []),
    "query": (query, "key_values", ["do(X=1)"]),
    "status": (status, "expand", ["data=er"]),
    "store": (store, "_history", ["history"]),
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupt_ends_a_command_with_one_line(monkeypatch, capsys, name):
    module, part, arguments = INTERRUPTED[name]

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, part, interrupted)
    assert module.main(arguments) == 130
    assert capsys.readouterr() == ("", "error: interrupted\n")


@pytest.mark.parametrize("module", ["experiments.store", "experiments.tables", "experiments.status"])
def test_a_command_whose_output_nobody_reads_ends_without_a_word(module):
    ours, its = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", module, "--help"]
    ended = subprocess.run(command, stdout=its, stderr=subprocess.PIPE, env=buffered(), text=True, check=False)
    os.close(its)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_an_answer_that_cannot_be_written_is_an_error():
    command = [sys.executable, "-m", "experiments.store", "--help"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=buffered(), text=True, check=False)
    expected = "error: stdout: expected a place that can be written to, got: [Errno 28] No space left on device\n"
    assert (ended.returncode, ended.stderr) == (2, expected)


def test_help_is_the_usage(capsys):
    assert answered(["name=x", "--help"], "how to", lambda _: "answer") == 0
    assert capsys.readouterr() == ("how to\n", "")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home folder, which is not the folder that a command starts in."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def test_a_tilde_is_the_home_folder(home):
    assert path("~/out/rows.csv") == home / "out" / "rows.csv"
    assert path("~no such user/a") == Path("~no such user/a")
    assert path("a~") == Path("a~")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (query, ["run=~/a.txt", "do(X=1)"]),
        (figures, ["name=causal_effects", "run=~/a.txt"]),
        (figures, ["name=causal_effects", "run=run", "out=~/a.txt"]),
        (figures, ["name=main_cd", "out=~/a.txt"]),
        (html_report, ["tables=~/a.txt"]),
        (html_report, ["out=~/a.txt"]),
        (export, ["out=~/a.txt"]),
    ],
)
def test_a_command_looks_into_the_home_folder(home, capsys, module, arguments):
    assert module.main(arguments) == 2
    assert f"got '{home / 'a.txt'}'" in capsys.readouterr().err
