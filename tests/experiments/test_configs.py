"""Every file in conf/ describes something that can be built."""

from __future__ import annotations

import dataclasses

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.utils import get_object
from omegaconf import OmegaConf

from bci.metrics import check_request
from experiments.build import check_settings
from experiments.command import CONFIGS, file_name
from experiments.job import job_id

BUILT = [path for group in ("data", "method", "tracking") for path in CONFIGS.glob(f"{group}/*.yaml")]
VARIANTS = list(CONFIGS.glob("method/*/*.yaml"))


@pytest.mark.parametrize("file", BUILT, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_keys_of_a_config_are_those_its_target_takes(file):
    settings = OmegaConf.to_container(OmegaConf.load(file))
    check_settings(file.parent.name, settings, get_object(settings["_target_"]))


@pytest.mark.parametrize("file", BUILT, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_config_composes_with_the_defaults(file):
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("config", overrides=[f"{file.parent.name}={file.stem}"])
    assert config[file.parent.name]["_target_"]
    assert (config.seed, config.force, config.store.path) == (0, False, "results/store")


@pytest.mark.parametrize("file", VARIANTS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_variant_changes_keys_of_its_method_alone(file):
    changed = OmegaConf.to_container(OmegaConf.load(file))
    del changed["defaults"]
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        method = compose("config", overrides=[f"method={file.parent.name}"]).method
        variant = compose("config", overrides=[f"method={file.parent.name}/{file.stem}"]).method
    assert changed
    assert all(method[key] != value for key, value in changed.items())
    assert variant == {**method, **changed}


def test_a_variant_is_the_same_job_as_its_method_with_those_keys():
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        variant = compose("config", overrides=["method=arco_gp/k4"])
        method = compose("config", overrides=["method=arco_gp", "method.max_parents=4"])
    assert file_name("arco_gp/k4") == file_name("arco_gp") == "arco_gp"
    assert job_id(variant, "arco_gp", "sachs") == job_id(method, "arco_gp", "sachs")


@pytest.mark.parametrize("file", list(CONFIGS.glob("metrics/*.yaml")), ids=lambda file: file.stem)
def test_the_metrics_of_a_config_exist(file):
    check_request(**OmegaConf.to_container(OmegaConf.load(file)))


def test_a_job_runs_where_it_is_started_and_its_directory_is_its_own():
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("config", return_hydra_config=True)
    HydraConfig.instance().set_config(config)
    assert config.hydra.job.chdir is False
    assert config.hydra.run.dir.startswith("outputs/")
    assert "_arco_gp_" in config.hydra.run.dir


@pytest.mark.parametrize("file", list(CONFIGS.glob("method/*.yaml")), ids=lambda file: file.stem)
def test_a_method_has_the_same_defaults_from_python(file):
    settings = OmegaConf.to_container(OmegaConf.load(file))
    target = get_object(settings.pop("_target_"))
    limit = settings.pop("timeout_seconds", None)  # the library has none
    defaults = {field.name: field.default for field in dataclasses.fields(target) if field.name != "timeout_seconds"}
    lists = {key: list(value) for key, value in defaults.items() if isinstance(value, tuple)}
    assert settings == {key: {**defaults, **lists}[key] for key in settings}
    if target.__module__.startswith("baselines."):  # every hyper-parameter is a key
        assert settings.keys() == defaults.keys()
        assert (limit is not None) == hasattr(target, "timeout_seconds")
