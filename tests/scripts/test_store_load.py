from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from store_load import METRICS, append_from_processes, job_id, job_rows, make_store

from experiments.store import ResultStore
from experiments.store.history import history


def test_a_made_store_is_as_many_appends_leave_it(tmp_path):
    made, appended = make_store(tmp_path / "made", 100), ResultStore(tmp_path / "appended")
    for k in range(3):
        appended.append(job_rows(str(k)))
    assert made.version == 99
    assert len(made.delta().file_uris()) == 99
    assert made.done(job_id("98"))
    assert not made.done(job_id("99"))
    when = ["started_at"]
    assert (
        made.rows(3)
        .drop(columns=when)
        .sort_values(["run_id", "metric"], ignore_index=True)
        .equals(appended.rows().drop(columns=when).sort_values(["run_id", "metric"], ignore_index=True))
    )
    assert [each[2:] for each in history(made)[:4]] == [each[2:] for each in history(appended)]
    assert made.append(job_rows("more")) == 100


def test_several_processes_append_what_they_are_told_to(tmp_path):
    append_from_processes(tmp_path / "store", writers=2, count=2)
    counts = ResultStore(tmp_path / "store").rows().groupby("job_id").size().to_dict()
    assert counts == {job_id(f"{writer}-{k}"): len(METRICS) for writer in range(2) for k in range(2)}
