from __future__ import annotations

import os
from pathlib import Path

import pytest
from hydra.errors import MissingConfigException
from omegaconf import OmegaConf

from bci.errors import InvalidInput
from experiments.command import CONFIGS, explain
from experiments.launchers import INSTALL, environment, positive


def test_every_plugin_of_a_preset_is_told_how_to_install():
    used = [file.read_text().split("override /hydra/launcher: ")[1].split()[0] for file in presets()]
    assert sorted(used) == sorted(["basic", *INSTALL])


def presets():
    return sorted((CONFIGS / "launcher").glob("*.yaml"))


def test_a_plugin_that_is_not_installed_is_one_line_that_says_how_to_install_it():
    missing = MissingConfigException("", missing_cfg_file="hydra/launcher/ray", options=["basic"])
    assert explain(missing) == "launcher=ray needs ray and hydra-ray-launcher; install them with make setup-ray"


def test_processes_of_jobs_have_thread_caps_and_find_our_packages(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/elsewhere", str(CONFIGS.parent)]))
    found = environment(3)
    assert {found[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")} == {"3"}
    assert found["PYTHONPATH"].split(os.pathsep) == [str(Path(CONFIGS).parent), "/elsewhere"]


@pytest.mark.parametrize("value", [0, -2, 1.5, True, None, "many"])
def test_numbers_of_a_launcher_are_checked(value):
    config = OmegaConf.create({"launcher": {"jobs": value}})
    with pytest.raises(InvalidInput, match=r"^launcher.jobs: expected a whole number of at least 1, got "):
        positive(config, "jobs")
