"""Simulated data sets: streams, standardisation, training and test interventions."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput
from bci.random_graphs import erdos_renyi
from bci.randomness import stream
from bci.scm import draw_scm


def simulate(**changes):
    settings = {
        "graph_model": "er",
        "num_nodes": 6,
        "expected_degree": 2,
        "mechanism": "linear",
        "num_samples": 50,
        "seed": 3,
        "interventional_test": {"values_per_node": 2, "num_samples": 40},
    }
    return simulated_dataset(**{**settings, **changes})


def same_scm(first, second):
    return np.array_equal(first.graph, second.graph) and all(
        np.array_equal(getattr(a, "weights", None), getattr(b, "weights", None))
        and getattr(a, "value", None) == getattr(b, "value", None)
        for a, b in zip(first.scm.mechanisms, second.scm.mechanisms, strict=True)
    )


def same_tests(first, second):
    return all(
        a.targets == b.targets and a.values == b.values and np.array_equal(a.samples, b.samples)
        for a, b in zip(first.interventional_test, second.interventional_test, strict=True)
    )


def test_contents():
    dataset = simulate()
    assert dataset.names == ("X0", "X1", "X2", "X3", "X4", "X5")
    assert dataset.observations.shape == (50, 6)
    assert not dataset.intervened.any()
    assert np.array_equal(dataset.scm.graph, dataset.graph)
    np.testing.assert_allclose(dataset.observations.std(axis=0, ddof=1), 1)


@pytest.mark.parametrize("mechanism", ["gp", "sigmoid", "linear"])
@pytest.mark.parametrize("graph_model", ["er", "sf"])
def test_same_seed_gives_the_same_data_and_another_seed_others(graph_model, mechanism):
    fingerprints = [simulate(graph_model=graph_model, mechanism=mechanism, seed=seed).fingerprint for seed in (1, 1, 2)]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_graph_model_is_the_one_asked_for():
    assert simulate(graph_model="sf", num_nodes=20).graph.sum() == 36
    assert simulate(graph_model="er", expected_degree=2.5).graph.sum() == 15


def test_sample_size_changes_neither_graph_nor_mechanisms():
    few, many = simulate(num_samples=10), simulate(num_samples=500)
    assert same_scm(few, many)
    assert many.num_samples == 500


def test_graph_mechanisms_and_observations_have_streams_of_their_own():
    dataset = simulate()
    graph, mechanisms, observations = (stream(3, purpose) for purpose in ("graph", "mechanisms", "observations"))
    scm = draw_scm(erdos_renyi(6, 2, graph), "linear", mechanisms)
    raw = dataset.scaler.inverse(dataset.observations)
    np.testing.assert_allclose(raw, scm.sample(50, observations), atol=1e-12)


def test_interventions_change_neither_observations_nor_mechanisms():
    plain, more = simulate(), simulate(interventions={"num_targets": 3, "samples_per_target": 4, "value": 1.0})
    assert same_scm(plain, more)
    np.testing.assert_allclose(
        plain.scaler.inverse(plain.observations), more.scaler.inverse(more.observations)[:50], atol=1e-12
    )


def test_training_interventions_set_one_node_to_the_value_asked_for():
    dataset = simulate(interventions={"num_targets": 3, "samples_per_target": 4, "value": 2.0})
    raw = dataset.scaler.inverse(dataset.observations)
    mean, std = raw[:50].mean(axis=0), raw[:50].std(axis=0, ddof=1)
    assert dataset.observations.shape == (62, 6)
    assert not dataset.intervened[:50].any()
    assert (dataset.intervened[50:].sum(axis=1) == 1).all()
    targets = dataset.intervened[50:].argmax(axis=1)
    assert [len(set(targets[i : i + 4])) for i in (0, 4, 8)] == [1, 1, 1]
    assert len(set(targets)) == 3
    np.testing.assert_allclose(raw[50:][np.arange(12), targets], (mean + 2 * std)[targets])


def test_training_interventions_reach_the_descendants_only():
    dataset = simulate(
        seed=4, num_samples=500, interventions={"num_targets": 6, "samples_per_target": 500, "value": 5.0}
    )
    reachable = np.linalg.matrix_power(np.eye(6) + dataset.graph, 6) > 0
    for start in range(500, 3500, 500):
        rows = slice(start, start + 500)
        target = int(dataset.intervened[start].argmax())
        for node in set(range(6)) - {target}:
            shifted = stats.ks_2samp(dataset.observations[:500, node], dataset.observations[rows, node]).pvalue < 1e-4
            assert shifted <= reachable[target, node]
            assert shifted or not dataset.graph[target, node]


def test_test_interventions_are_standardised_and_come_from_the_model():
    dataset = simulate(interventional_test={"values_per_node": 5, "num_samples": 2000})
    assert [sample.targets for sample in dataset.interventional_test] == [
        (node,) for node in range(6) for _ in range(5)
    ]
    for sample in dataset.interventional_test:
        node, value = sample.targets[0], sample.values[0]
        assert -1 <= value <= 1
        assert (sample.samples[:, node] == value).all()
        raw_value = value * dataset.scaler.std[node] + dataset.scaler.mean[node]
        fresh = dataset.scaler.transform(dataset.scm.sample(2000, np.random.default_rng(0), do={node: raw_value}))
        for other in set(range(6)) - {node}:
            assert stats.ks_2samp(sample.samples[:, other], fresh[:, other]).pvalue > 1e-4


def test_test_values_are_uniform():
    dataset = simulate(interventional_test={"values_per_node": 100, "num_samples": 1})
    values = [sample.values[0] for sample in dataset.interventional_test]
    assert stats.kstest(values, stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_test_interventions_do_not_depend_on_when_they_are_drawn():
    early, late = simulate(), simulate()
    _ = early.interventional_test
    late.scm.sample(100, np.random.default_rng(0))
    assert same_tests(early, late)
    late.__dict__.pop("interventional_test")  # as in a copy of the data set, which draws anew
    assert same_tests(early, late)


def test_test_interventions_can_be_left_out():
    assert simulate(interventional_test=None).interventional_test == ()


def test_noise_variance_setting_reaches_the_model():
    roots = simulate().graph.sum(axis=0) == 0
    assert (simulate(noise_variance=0.693).scm.noise_variances[~roots] == 0.693).all()
    drawn = simulate(noise_variance={"shape": 1e6, "rate": 2e6}).scm.noise_variances[~roots]
    assert np.abs(drawn - 0.5).max() < 0.01


def test_sigmoid_signs_setting_reaches_the_model():
    dataset = simulate(mechanism="sigmoid", expected_degree=2.5, sigmoid_signs="per_node")
    slopes = [mechanism.slopes for mechanism in dataset.scm.mechanisms if hasattr(mechanism, "slopes")]
    assert all(len(set(np.sign(slope))) == 1 for slope in slopes)


FINGERPRINT = """
from bci.data.simulate import simulated_dataset
for graph_model in ("er", "sf"):
    for mechanism in ("gp", "sigmoid", "linear"):
        dataset = simulated_dataset(
            graph_model=graph_model, num_nodes=20, expected_degree=4, mechanism=mechanism, num_samples=100, seed=5
        )
        print(dataset.fingerprint)
"""


def test_fingerprint_is_the_same_in_other_processes_whatever_hash_seed_and_threads():
    outputs = []
    for hash_seed, threads in (("1", "1"), ("2", "2")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
        }
        environment["OPENBLAS_NUM_THREADS"] = threads
        command = [sys.executable, "-c", FINGERPRINT]
        outputs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0].split())) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"graph_model": "tree"}, "graph_model: expected one of er, sf, got 'tree'"),
        ({"num_nodes": 1}, "num_nodes: expected a whole number of at least 2, got 1"),
        ({"num_nodes": 2.5}, "num_nodes: expected a whole number"),
        ({"expected_degree": 3}, "expected_degree: expected 0 to 2.5 edges per node"),
        ({"expected_degree": "many"}, "expected_degree: expected a finite number, got 'many'"),
        ({"mechanism": "cubic"}, "mechanism: expected one of gp, sigmoid, linear, got 'cubic'"),
        ({"num_samples": 1}, "num_samples: expected a whole number of at least 2, got 1"),
        ({"seed": -1}, "seed: expected a whole number from 0 to 9223372036854775807, got -1"),
        ({"noise_variance": 0}, "noise_variance: expected a positive number, got 0"),
        ({"noise_variance": {"shape": 1}}, "noise_variance: expected a mapping with the keys shape, rate"),
        ({"noise_variance": {"shape": 1, "rate": -1}}, "noise_variance.rate: expected a positive number, got -1"),
        ({"sigmoid_signs": "x"}, "sigmoid_signs: expected one of per_parent, per_node, got 'x'"),
        ({"interventions": {"num_targets": 7}}, "interventions.num_targets: expected at most 6"),
        ({"interventions": {"targets": 1}}, "interventions: expected a mapping with the keys num_targets"),
        ({"interventions": {"samples_per_target": 0}}, "interventions.samples_per_target: expected a whole number"),
        ({"interventional_test": {"num_samples": 0}}, "interventional_test.num_samples: expected a whole number"),
    ],
)
def test_impossible_settings_are_refused_by_key(changes, message):
    with pytest.raises(InvalidInput) as caught:
        simulate(**changes)
    assert str(caught.value).startswith(message)
