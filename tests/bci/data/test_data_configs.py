"""Every file of conf/data makes a data set, with the settings that it documents."""

from pathlib import Path

import hydra
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

CONF = Path(__file__).parents[3] / "conf"
CONFIGS = sorted(path.stem for path in (CONF / "data").glob("*.yaml"))


def compose(name, *overrides):
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra.compose(overrides=[f"+data={name}", *overrides]).data


def make(config):
    return instantiate(config, _convert_="all")


def test_the_documented_sources_are_there():
    assert set(CONFIGS) >= {"er", "sf", "sachs", "sachs_gp", "csv"}


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "csv"])
def test_config_makes_a_data_set(name):
    first, second = make(compose(name)), make(compose(name))
    assert first.fingerprint == second.fingerprint
    assert first.graph is not None


def test_csv_config_needs_only_a_path(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n2,1\n5,5\n")
    config = compose("csv", f"data.path={tmp_path / 'data.csv'}")
    assert make(config).names == ("a", "b")
    assert {key.removeprefix("data.") for key in OmegaConf.missing_keys(compose("csv"))} == {"path"}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_key_has_a_comment(name):
    lines = (CONF / "data" / f"{name}.yaml").read_text().splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        assert line.startswith("#") or before.startswith("#"), line


def test_simulated_defaults():
    dataset = make(compose("er", "data.seed=3"))
    assert dataset.observations.shape == (200, 20)
    assert make(compose("sf")).graph.sum() == 36
    assert make(compose("sachs")).observations.shape == (853, 11)
    assert make(compose("sachs_gp")).observations.shape == (100, 11)


def test_command_line_overrides():
    dataset = make(
        compose(
            "er",
            "data.num_nodes=8",
            "data.mechanism=sigmoid",
            "data.noise_variance=0.693",
            "data.sigmoid_signs=per_node",
            "data.interventions.num_targets=2",
            "data.interventional_test=null",
        )
    )
    assert dataset.observations.shape == (220, 8)
    roots = dataset.graph.sum(axis=0) == 0
    assert (dataset.scm.noise_variances[~roots] == 0.693).all()
    assert dataset.interventional_test == ()
