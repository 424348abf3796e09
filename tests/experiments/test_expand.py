from __future__ import annotations

from functools import cache

import pandas as pd
import pytest
from hydra import compose, initialize_config_dir

from bci.errors import InvalidInput
from experiments.command import CONFIGS
from experiments.expand import expand
from experiments.job import job_id

FOLDER = CONFIGS / "experiment"
EXPERIMENTS = sorted(file.relative_to(FOLDER).with_suffix("").as_posix() for file in FOLDER.rglob("*.yaml"))
PRINTED = CONFIGS.parent / "results" / "paper" / "tables.csv"
TABLES = {
    "sachs": "sachs",
    "dist-scores": "interventional",
    "ablations_50_nodes_1": "nodes_50",
    "ablations_max_pssize_1": "max_parents",
    "ablations_avg_deg_4": "degree_4",
    "ablations_avg_deg_8": "degree_8",
    "ablations_invertible_nl": "invertible",
    "ablations_n_data_sf_nl_1": "num_samples",
    "ablations_n_data_sf_nl_2": "num_samples",
    "ablations_n_data_er_nl_1": "num_samples",
    "ablations_n_data_er_nl_2": "num_samples",
}
NAMES = {"GRASP": "grasp", "PC": "pc/castle", "ARCO-GP": "arco_gp", "ARCO-K2-GP": "arco_gp"} | {
    f"ARCO-K{k}-GP": f"arco_gp/k{k}" for k in (1, 3, 4)
}
DEFAULTS = {"data.num_nodes": "20", "data.expected_degree": "2", "data.mechanism": "gp"}
# Not printed, and taken for 100 in the file of printed figures; see the configs.
NUM_SAMPLES = dict.fromkeys(("ablations_avg_deg_4", "ablations_avg_deg_8", "ablations_invertible_nl"), "200") | {
    "ablations_50_nodes_1": "500"
}


@cache
def jobs(*overrides):
    return expand(overrides).jobs


def ids(*overrides):
    return [job.job_id for job in jobs(*overrides)]


def one_by_one(method_name, data_name, *combinations):
    """The ids of jobs that are composed one after the other, as a sweep composes them."""
    found = []
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        for combination in combinations:
            found.append(job_id(compose("config", overrides=combination), method_name, data_name))
    return found


def test_the_jobs_are_those_of_the_sweep_in_its_order():
    expected = one_by_one(
        "arco_gp",
        "er",
        *[
            ["data=er", f"method={method}", f"data.seed={data_seed}", f"seed={seed}", "method.steps=7"]
            for method in ("arco_gp", "arco_gp/k4")
            for data_seed in (0, 2)
            for seed in (0, 1)
        ],
    )
    sweep = expand(["data=er", "method=arco_gp,arco_gp/k4", "data.seed=0,2", "seed=range(2)", "method.steps=7"])
    assert [job.job_id for job in sweep.jobs] == expected
    assert len(set(expected)) == 8
    assert sweep.jobs[1].overrides["seed"] == "1"


def test_a_key_that_only_the_data_of_a_sweep_have_may_be_set():
    """The default data, sachs, has no number of nodes."""
    assert ids("data=er,sf", "data.num_nodes=5", "method=ges", "data.interventions={num_targets: 2}") == [
        *one_by_one("ges", "er", ["data=er", "data.num_nodes=5", "method=ges", "data.interventions={num_targets: 2}"]),
        *one_by_one("ges", "sf", ["data=sf", "data.num_nodes=5", "method=ges", "data.interventions={num_targets: 2}"]),
    ]


@pytest.mark.parametrize(
    "value",
    ["null", "", "'1'", "1", "'null'", "'true'", '"it\'s"', "'a, b'", "[null,'1',1]", "{a: null}", "1e-3", "nan"],
)
def test_a_value_means_in_a_sweep_over_data_what_it_means_in_a_single_run(value):
    override = f"data.graph_model={value}"
    swept = ids("data=er,sf", override, "method=ges")
    assert swept == [
        *one_by_one("ges", "er", ["data=er", override, "method=ges"]),
        *one_by_one("ges", "sf", ["data=sf", override, "method=ges"]),
    ]


def test_a_value_that_a_sweep_cannot_hold_is_refused_as_it_was_typed():
    with pytest.raises(
        InvalidInput,
        match=r"^data\.graph_model: expected a value that a sweep over data can be written with, got \"it's, a\";",
    ):
        expand(["data=er,sf", 'data.graph_model="it\'s, a"', "method=ges"])


def test_an_override_replaces_what_the_experiment_says():
    assert ids("+experiment=quick/degree_4", "num_models=1", "method=ges", "data=sf") == one_by_one(
        "ges", "sf", ["data=sf", "data.expected_degree=4", "data.num_samples=200", "method=ges"]
    )


@pytest.mark.parametrize("name", EXPERIMENTS, ids=str)
def test_an_experiment_has_jobs_and_none_twice(name):
    found = ids(f"+experiment={name}")
    assert len(found) == len(set(found)) > 0


@pytest.mark.parametrize("table", TABLES)
def test_an_experiment_covers_its_printed_table(table):
    printed = pd.read_csv(PRINTED, dtype=str, keep_default_na=False)
    printed = printed[printed["table"] == table]
    swept = [job.overrides for job in jobs(f"+experiment={TABLES[table]}")]
    rows = printed.drop_duplicates(["graph", "num_samples", "method"])
    assert len(rows) > 0
    for row in rows.itertuples():
        wanted = {
            "method": NAMES.get(row.method, row.method.lower().replace("-", "_")),
            "data": {"SF": "sf", "ER": "er", "Sachs": "sachs" if table == "sachs" else "sachs_gp"}[row.graph],
            "data.num_nodes": row.num_nodes,
            "data.expected_degree": row.expected_degree,
            "data.num_samples": NUM_SAMPLES.get(table, row.num_samples),
            "data.mechanism": row.mechanism,
        }
        if row.graph == "Sachs":  # of the graph
            wanted = {key: wanted[key] for key in ("method", "data")}
        if row.table == "dist-scores":
            wanted["data.num_samples"] = row.num_samples
        seen = [job for job in swept if all({**DEFAULTS, **job}[key] == value for key, value in wanted.items())]
        assert len(seen) == int(row.num_models), wanted
