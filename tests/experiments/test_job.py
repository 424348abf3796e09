from __future__ import annotations

import hashlib

import numpy as np
import pytest
from omegaconf import OmegaConf

from bci.dataset import Dataset
from bci.errors import InvalidInput
from experiments.job import Job, dataset_columns, job_columns, job_id


def changed(config, key, value):
    other = config.copy()
    OmegaConf.update(other, key, value, force_add=True)
    return other


def test_the_id_is_the_hash_of_what_determines_the_numbers():
    config = OmegaConf.create(
        {
            "data": {"_target_": "d", "degree": 2.0},
            "method": {"_target_": "m", "seed_of": "${seed}"},
            "metrics": {"names": ["eshd"]},
            "seed": 3,
            "store": {"path": "s"},
            "force": False,
        }
    )
    text = (
        '{"data":{"_target_":"d","degree":2},"data_name":"er","method":{"_target_":"m","seed_of":3},'
        '"method_name":"x","metrics":{"names":["eshd"]},"seed":3}'
    )
    assert job_id(config, "x", "er") == hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("store.path", "elsewhere"),
        ("force", True),
        ("tracking", {"mode": "on"}),
        ("data.num_nodes", 4.0),
        ("method.timeout_seconds", 60),
    ],
)
def test_where_and_how_a_job_runs_does_not_change_its_id(config, key, value):
    assert job_id(changed(config, key, value), "m", "d") == job_id(config, "m", "d")


@pytest.mark.parametrize(
    ("key", "value"),
    [("data.num_nodes", 5), ("data.seed", 6), ("method.max_parents", 3), ("metrics.num_graphs", 11), ("seed", 4)],
)
def test_whatever_changes_the_numbers_changes_the_id(config, key, value):
    assert job_id(changed(config, key, value), "m", "d") != job_id(config, "m", "d")


def test_method_and_data_count_by_name_too(config):
    assert len({job_id(config, "m", "d"), job_id(config, "n", "d"), job_id(config, "m", "e")}) == 3


def test_a_data_file_counts_by_content_and_not_by_path(config, tmp_path):
    for name, content in [("a", "1"), ("b", "1"), ("c", "2")]:
        (tmp_path / name).write_text(content)
    ids = [job_id(changed(config, "data.graph_path", str(tmp_path / name)), "m", "d") for name in "abc"]
    assert ids[0] == ids[1] != ids[2]
    assert job_id(changed(config, "data.graph_path", None), "m", "d") not in ids


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("seed", -1, "seed: expected a whole number from 0 to 9223372036854775807, got -1"),
        ("seed", "abc", "seed: expected a whole number"),
        ("seed", True, "seed: expected a whole number"),
        ("force", "maybe", "force: expected true or false"),
        ("store.path", "", "store.path: expected a folder"),
        ("store.path", None, "store.path: expected a folder"),
        ("metrics", None, "metrics: expected a group of settings"),
        ("data.path", "???", "data.path: expected a value, got none"),
        ("data.path", "nowhere.csv", "data.path: expected a file that can be read, got 'nowhere.csv' \\(No such file"),
        ("data.path", 3, "data.path: .* \\(not a file name\\)"),
        ("data.num_nodes", "${nothing}", "data.num_nodes: .* 'nothing' not found"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(config, key, value, expected):
    with pytest.raises(InvalidInput, match=expected) as error:
        Job.from_config(changed(config, key, value), "m", "d")
    assert "\n" not in str(error.value)


def test_columns_tell_the_config_and_keep_only_values_of_their_type(config):
    config = changed(changed(config, "data.expected_degree", 2), "data.mechanism", 7)
    columns = job_columns(Job.from_config(config, "random_dag", "chain"))
    assert columns["method"] == "random_dag"
    assert columns["data_name"] == "chain"
    assert columns["graph_model"] == "chain"
    assert columns["mechanism"] is None
    assert columns["expected_degree"] == 2.0
    assert isinstance(columns["expected_degree"], float)
    assert (columns["data_seed"], columns["method_seed"]) == (5, 3)
    assert columns["method_config"] == '{"_target_":"stand_ins.RandomDag","max_parents":2}'


def test_columns_of_the_data_are_its_size_and_fingerprint():
    dataset = Dataset.from_raw(np.random.default_rng(0).standard_normal((7, 3)), "abc")
    assert dataset_columns(dataset) == {"num_nodes": 3, "num_samples": 7, "data_fingerprint": dataset.fingerprint}
