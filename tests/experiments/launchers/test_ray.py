from __future__ import annotations

import pytest
from shell import errors

pytest.importorskip("hydra_plugins.hydra_ray_launcher")
pytestmark = pytest.mark.ray
RAY = ["launcher=ray", "launcher.jobs=2", "hydra.sweep.dir=sweep"]


def test_a_sweep_on_a_cluster_of_its_own_goes_on_when_jobs_fail_or_die(start, rows):
    sweep = start(*RAY, "method.mode=fit,crash,die", "data.seed=0,1")
    out, err = sweep.communicate(timeout=300)
    assert sweep.returncode == 1
    assert [status for _, _, status, *_ in rows()].count("ok") == 2
    assert errors(err)[-1] == "error: 4 of 6 jobs did not finish (2 failed, 2 killed), 2 ran, 0 skipped; see sweep"
    assert "\x1b" not in out + err


def test_an_address_without_a_cluster_is_one_line(start):
    sweep = start(*RAY, "launcher.address=127.0.0.1:1")
    _, err = sweep.communicate(timeout=300)
    assert sweep.returncode == 2
    assert err.startswith("error: launcher.address: expected a running Ray cluster, got '127.0.0.1:1'")
    assert len(err.splitlines()) == 1


def test_jobs_with_more_threads_than_cores_are_refused(start):
    sweep = start("launcher=ray", "launcher.threads=99999", "hydra.sweep.dir=sweep")
    _, err = sweep.communicate(timeout=300)
    assert sweep.returncode == 2
    assert err.startswith("error: launcher.threads: expected at most the ")
    assert len(err.splitlines()) == 1
