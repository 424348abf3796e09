from __future__ import annotations

import csv
import fcntl
import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import table_jobs

from experiments import publish, tables
from experiments.html_report import main as write_page
from experiments.store import ResultStore


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "expand", table_jobs.sweep)
    results = ResultStore(tmp_path / "store")
    results.append(table_jobs.stored())
    return results


@pytest.fixture
def make(store, tmp_path, capsys):
    """Build the table; the exit code, what is said and the files."""

    def made(*arguments):
        given = {"name": "interventional", "store.path": str(store.path), "out": str(tmp_path / "out")}
        given |= dict(each.split("=", 1) for each in arguments)
        code = tables.main([f"{key}={value}" for key, value in given.items()])
        files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
        contents = {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in files}
        return code, capsys.readouterr(), contents

    return made


def test_the_files_of_a_table(make):
    code, said, files = make()
    assert code == 0
    counts = "2 overlap, 3 better, 3 worse, 3 not computed, 1 not printed"
    assert said.out.endswith(f"10 of 12 jobs done; of 12 printed cells {counts}\n")
    folder = "tables/interventional/"
    assert set(files) == {
        ".publish.lock",
        "README.md",
        *(folder + f"interventional{end}" for end in (".csv", ".md", ".tex", "_tables.tex")),
        *(folder + name for name in ("manifest.json", "values.csv")),
    }


def test_the_csv_has_every_cell(make):
    _, _, files = make()
    cells = list(csv.DictReader(files["tables/interventional/interventional.csv"].decode().splitlines()))
    assert len(cells) == 15
    assert cells[0] == {
        "graph": "Sachs",
        "num_samples": "100",
        "method": "ARCO-GP",
        "variant": "arco_gp",
        "metric": "MMD",
        "ours_mean": "0.15",
        "ours_ci95": "0.0226321",
        "num_models": "3",
        "num_failed": "0",
        "num_undefined": "0",
        "printed_mean": "0.15",
        "printed_ci95": "0.04",
        "mark": "overlap",
    }


def test_the_markdown_shows_ours_above_the_printed(make):
    _, _, files = make()
    lines = files["tables/interventional/interventional.md"].decode().splitlines()
    place = next(k for k, line in enumerate(lines) if line.startswith("| ARCO-GP"))
    assert lines[place].startswith("| ARCO-GP | ours | 3 | 0.15 ± 0.02 ≈ | 1.50 ± 0.23 (-) |")
    assert lines[place + 1].startswith("|  | printed |  | 0.15 ± 0.04 | 0.93 ± 0.16 |")
    assert any("n.c." in line for line in lines if "DIBS-GP" in line)
    assert any(line.endswith("2 of 3 models computed, 1 failed.") for line in lines)


def test_the_values_are_those_of_every_job(make):
    _, _, files = make()
    values = list(csv.DictReader(files["tables/interventional/values.csv"].decode().splitlines()))
    assert len(values) == 10 * 3 + 1
    assert [row["value"] for row in values if (row["variant"], row["metric"]) == ("arco_gp", "mmd")] == [
        "0.15",
        "0.17",
        "0.13",
    ]
    assert [row["job_id"] for row in values if row["status"] == "failed"] == ["resit_gp2"]
    assert [row["undefined_reason"] for row in values if row["job_id"] == "beeps0"] == ["", "", "no such graph"]


def test_the_manifest_says_what_the_table_rests_on(make, store):
    _, _, files = make()
    manifest = json.loads(files["tables/interventional/manifest.json"])
    assert manifest["store_version"] == store.version
    assert manifest["jobs"] == {"all": 12, "done": 10, "failed": 1, "missing": 1}
    assert manifest["commits"] == [{"commit": "abc", "uncommitted_changes": False, "jobs": 11}]
    assert manifest["seeds"] == {"data": [0, 1, 2], "method": [0]}
    assert manifest["packages"] == [{"jobs": 11, "versions": {"python": "3.11"}}]
    assert "elsewhere" not in json.dumps(manifest)
    assert "Sachs, N = 100 (RESIT-GP): 2 of 3 models computed, 1 failed." in manifest["footnotes"]


def test_the_same_version_gives_the_same_bytes(make, store):
    _, _, first = make()
    version = store.version
    job = table_jobs.jobs(("beeps",), 3)[2]
    store.append(table_jobs.rows(job, {"mmd": 1.0, "l1": 1.0, "l2": 1.0}, hour=5))
    assert make()[2] != first
    assert make(f"version={version}")[2] == first


def test_the_machine_that_builds_a_table_is_not_in_its_files(make, tmp_path, monkeypatch):
    _, _, elsewhere = make()
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")  # where the jobs ran
    shutil.rmtree(tmp_path / "out")
    _, _, here = make()
    (known,) = json.loads(here.pop("machines.json")).items()
    assert here == elsewhere
    (machine,) = json.loads(here["tables/interventional/manifest.json"])["machines"]
    assert (machine, known[1]["cores"]) == ({"id": known[0], "jobs": 11, "devices": ["cpu"]}, os.cpu_count())


def test_the_index_counts_marks_and_those_that_rest_on_few_models(make):
    _, _, files = make()
    index = files["README.md"].decode().splitlines()
    head, _, ours, others = (
        [each.strip() for each in line.strip("|").split("|")] for line in index if line.startswith("|")
    )
    for row, expected in (
        (ours, {"overlap": 1, "better": 1, "worse": 1, "not computed": 0, "on fewer than 3 models": 0}),
        (others, {"overlap": 1, "better": 2, "worse": 2, "not computed": 3, "on fewer than 3 models": 5}),
    ):
        counted = dict(zip(head, row, strict=True))
        assert {key: int(counted[key]) for key in expected} == expected


def test_explanations_go_into_the_index(make, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "explanations.md").write_text("# Why\n\nFor all.\n\n## interventional\n\nL1 is worse as ...\n")
    _, _, files = make()
    index = files["README.md"].decode()
    assert "L1 is worse as ..." in index.partition("## interventional")[2]
    assert "For all." in index.partition("## interventional")[0]
    (tmp_path / "out" / "explanations.md").write_text("## nope\n")
    code, said, _ = make()
    assert code == 2
    assert said.err.startswith("error: ")
    assert "'nope'" in said.err


def test_the_page_of_results_shows_a_table(make, tmp_path):
    make()
    page = tmp_path / "page.html"
    (tmp_path / "none").mkdir()
    assert write_page([f"out={page}", f"tables={tmp_path}/out/tables", f"figures={tmp_path}/none"]) == 0
    text = page.read_text()
    assert "0.15 ± 0.02" in text
    assert "exact_gp" in text
    assert "2 of 3 models computed, 1 failed." in text


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("explanations.md", b"\xff", "explanations.md: expected text in UTF-8, got others"),
        ("machines.json", b"{", "machines.json: expected a JSON object, machines by"),
        ("machines.json", b"[1]", "machines.json: expected a JSON object, machines by"),
        ("tables/sachs/manifest.json", b"{", "tables/sachs: expected a published table, got other files (JSONDecode"),
        ("tables/sachs/manifest.json", b"{}", "tables/sachs: expected a published table, got other files (KeyError"),
        ("tables/sachs/manifest.json", b"[]", "tables/sachs: expected a published table, got other files (TypeError"),
        ("tables/sachs/sachs.csv", b"", "tables/sachs: expected a published table, got other files (EmptyDataError"),
        ("tables/sachs/sachs.csv", b"a\n1\n", "tables/sachs: expected a published table, got other files (KeyError"),
    ],
)
def test_a_broken_file_beside_the_table_is_named_in_one_line(make, tmp_path, file, content, message):
    sachs = tmp_path / "out" / "tables" / "sachs"
    sachs.mkdir(parents=True)
    (sachs / "manifest.json").write_text('{"store_version": 1, "jobs": {"all": 1, "done": 1}}')
    (tmp_path / "out" / file).write_bytes(content)
    code, said, _ = make()
    assert (code, said.out) == (2, "")
    assert said.err.startswith(f"error: {tmp_path}/out/{message}")
    assert len(said.err.splitlines()) == 1


def test_a_table_that_was_not_written_to_its_end_is_not_in_the_index(make, tmp_path, monkeypatch):
    _, _, whole = make()
    with monkeypatch.context() as patched:
        patched.setattr(publish, "values_csv", lambda _: "\ud800")  # cannot be written
        with pytest.raises(UnicodeEncodeError):
            make()
    folder = tmp_path / "out" / "tables" / "interventional"
    assert not (folder / "manifest.json").exists()
    assert "interventional" not in publish.index(tmp_path / "out")
    (folder / ".values.csv.part").write_text("left by a killed process")
    assert make()[2] == whole


def test_of_two_builds_at_once_one_waits(make, tmp_path):
    make()
    with (tmp_path / "out" / ".publish.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(make)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.5)
            fcntl.flock(held, fcntl.LOCK_UN)
            assert waiting.result()[0] == 0


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("name=nope", "name: expected one of main_cd, sachs,"),
        ("name=", "name: expected one of main_cd, sachs,"),
        ("version=99", "version: "),
        ("version=x", "version: "),
        ("store.path=nope", "store.path: "),
        ("oops=1", "command line: expected name=..., store.path=...,"),
        ("out=/dev/null", "out: expected a folder of published tables"),
    ],
)
def test_bad_input_is_one_line(make, argument, message):
    code, said, _ = make(argument)
    assert (code, said.out) == (2, "")
    assert said.err.startswith(f"error: {message}")
    assert len(said.err.splitlines()) == 1


def test_a_store_without_jobs_of_the_table_says_how_to_run_them(make, tmp_path):
    other = ResultStore(tmp_path / "other")
    other.append(table_jobs.rows(table_jobs.SweepJob({"method": "ges", "data.seed": "0"}, "x"), {"eshd": 1.0}))
    code, said, _ = make(f"store.path={other.path}")
    assert code == 2
    assert said.err.endswith("run python -m experiments.run -m +experiment=interventional\n")


@pytest.mark.latex
def test_latex_compiles(make, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.fail("pdflatex is missing; install texlive-latex-base and texlive-latex-extra")
    make()
    folder = tmp_path / "out" / "tables" / "interventional"
    ran = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "interventional.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert (folder / "interventional.pdf").read_bytes().startswith(b"%PDF")
    assert "Overfull" not in ran.stdout
