from __future__ import annotations

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.errors import ConfigCompositionException
from hydra.types import HydraContext, RunMode

from experiments.command import CONFIGS
from experiments.launchers.sweeper import Sweeper


@pytest.fixture
def composed(monkeypatch):
    """Validate a batch of jobs; returns those that were composed."""
    loader = ConfigLoaderImpl(create_config_search_path(str(CONFIGS)))
    sweeper = Sweeper(max_batch_size=None)
    sweeper.hydra_context = HydraContext(config_loader=loader, callbacks=None)
    sweeper.config = loader.load_configuration("config", overrides=[], run_mode=RunMode.MULTIRUN)
    load, seen = loader.load_sweep_config, []
    monkeypatch.setattr(
        loader,
        "load_sweep_config",
        lambda master_config, sweep_overrides: seen.append(sweep_overrides) or load(master_config, sweep_overrides),
    )

    def validate(*batch):
        sweeper.validate_batch_is_legal(batch)
        return seen

    return validate


def test_of_jobs_that_differ_in_plain_values_one_is_composed(composed):
    jobs = [[f"data={data}", f"data.seed={seed}"] for data in ("er", "sf") for seed in range(5)]
    assert composed(*jobs) == [["data=er", "data.seed=0"], ["data=sf", "data.seed=0"]]


def test_what_only_a_later_job_lacks_is_found(composed):
    with pytest.raises(ConfigCompositionException, match=r"method\.steps"):
        composed(["data=er", "method=arco_gp", "method.steps=1"], ["data=er", "method=exact_gp", "method.steps=1"])


def test_keys_of_hydra_are_typed_so_that_their_values_count(composed):
    assert len(composed(["hydra.verbose=true"], ["hydra.verbose=false"])) == 2
