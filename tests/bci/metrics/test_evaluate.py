"""All metrics together: names, shared sampling, undefined cells, and what holds for every metric."""

import numpy as np
import pytest
import yaml

from bci.cpdag import dag_to_cpdag
from bci.errors import InvalidInput
from bci.metrics import INTERVENTIONAL, METRICS, STRUCTURE, Undefined, check_request, evaluate
from bci.metrics.sampled import SampledPosterior, distinct
from bci.posterior import GraphPosterior, Posterior, WeightedGraphs

PERFECT = {"eshd": 0, "shd_skeletonwise": 0, "tpr": 1, "tnr": 1, "auroc": 1, "auprc": 1, "average_precision": 1}
PERFECT |= {"a_aid": 0, "p_aid": 0, "oset_aid": 0}
PERFECT |= {f"{name}_cpdag": value for name, value in PERFECT.items()}


class Drawn(Posterior):
    """Draws with replacement from given DAGs, and counts how often it is asked."""

    graph_kind = "dag"
    diagnostics = {}  # noqa: RUF012

    def __init__(self, graphs):
        self.graphs, self.calls = graphs, []

    @property
    def edge_probabilities(self):
        return self.graphs.mean(axis=0)

    def sample_graphs(self, n, rng):
        self.calls.append(n)
        return WeightedGraphs(self.graphs[rng.integers(len(self.graphs), size=n)], np.full(n, 1 / n))


@pytest.fixture
def truth_and_graphs(random_dags):
    truth, *graphs = random_dags(9, 6, 0.4, np.random.default_rng(2))
    return truth, np.array(graphs)


def evaluate_all(posterior, dataset, seed=0, **settings):
    return evaluate(posterior, dataset, names=STRUCTURE, rng=np.random.default_rng(seed), **settings)


def test_perfect_posterior_has_perfect_values(truth_and_graphs, dataset_with):
    truth, _ = truth_and_graphs
    values = evaluate_all(GraphPosterior(truth[None]), dataset_with(truth))
    assert values == {"num_edges": truth.sum(), **PERFECT}


def test_perfect_cpdag_has_perfect_values_between_classes(truth_and_graphs, dataset_with):
    truth, _ = truth_and_graphs
    values = evaluate_all(GraphPosterior(dag_to_cpdag(truth)[None], graph_kind="cpdag"), dataset_with(truth))
    assert values["num_edges"] == truth.sum()
    assert {name: values[name] for name in PERFECT if name.endswith("_cpdag")} == {
        name: value for name, value in PERFECT.items() if name.endswith("_cpdag")
    }


def test_every_metric_is_covered_by_the_perfect_values():
    assert {"num_edges", *PERFECT} == set(STRUCTURE)
    assert {*STRUCTURE, *INTERVENTIONAL} == set(METRICS)


@pytest.mark.parametrize("kind", ["dag", "cpdag"])
def test_relabelling_the_nodes_changes_nothing(truth_and_graphs, dataset_with, kind):
    truth, graphs = truth_and_graphs
    graphs = dag_to_cpdag(graphs) if kind == "cpdag" else graphs
    order = np.random.default_rng(3).permutation(6)
    weights = np.random.default_rng(4).dirichlet(np.ones(len(graphs)))
    values = evaluate_all(GraphPosterior(graphs, weights, kind), dataset_with(truth))
    moved = evaluate_all(
        GraphPosterior(graphs[:, order][:, :, order], weights, kind), dataset_with(truth[np.ix_(order, order)])
    )
    assert moved == pytest.approx(values)


def test_weights_matter_to_every_metric(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    posterior = np.array([truth, *graphs])
    uniform = evaluate_all(GraphPosterior(posterior), dataset_with(truth))
    certain = evaluate_all(GraphPosterior(posterior, np.eye(len(posterior))[0]), dataset_with(truth))
    assert [name for name in STRUCTURE if uniform[name] == certain[name]] == []


def test_graph_given_twice_counts_as_its_total_weight(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    twice = GraphPosterior(graphs[[0, 1, 0]], [0.2, 0.5, 0.3])
    assert evaluate_all(twice, dataset_with(truth)) == pytest.approx(
        evaluate_all(GraphPosterior(graphs[:2], [0.5, 0.5]), dataset_with(truth))
    )


def test_distinct_graphs_keep_their_weight(truth_and_graphs):
    _, graphs = truth_and_graphs
    sample = distinct(WeightedGraphs(graphs[[3, 1, 3, 2, 1]], np.array([0.1, 0.2, 0.3, 0.0, 0.4])))
    found = {graph.tobytes(): weight for graph, weight in zip(*sample, strict=True)}
    assert found == pytest.approx({graphs[3].tobytes(): 0.4, graphs[1].tobytes(): 0.6})


def test_graphs_are_drawn_once_for_all_metrics(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    posterior = Drawn(graphs)
    evaluate_all(posterior, dataset_with(truth), num_graphs=20)
    assert posterior.calls == [20]


def test_each_metric_alone_has_the_value_it_has_among_all(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    together = evaluate_all(Drawn(graphs), dataset_with(truth), seed=7)
    alone = {name: METRICS[name](Drawn(graphs), dataset_with(truth), np.random.default_rng(7)) for name in STRUCTURE}
    assert alone == together


def test_metrics_of_the_edge_probabilities_have_no_sampling_error(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    exact = evaluate_all(GraphPosterior(graphs), dataset_with(truth))
    few = evaluate_all(Drawn(graphs), dataset_with(truth), num_graphs=1)
    for name in ("eshd", "shd_skeletonwise", "num_edges", "tpr", "tnr", "auroc", "auprc", "average_precision"):
        assert few[name] == pytest.approx(exact[name])
    assert few["p_aid"] != pytest.approx(exact["p_aid"])


def test_without_ground_truth_only_the_number_of_edges_is_defined(truth_and_graphs, dataset_with):
    _, graphs = truth_and_graphs
    values = evaluate_all(GraphPosterior(graphs), dataset_with(None, num_nodes=6))
    assert values.pop("num_edges") == pytest.approx(graphs.sum() / len(graphs))
    assert set(values.values()) == {Undefined("no ground truth")}


def test_values_come_in_the_order_of_the_names(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    names = ["tnr", "a_aid", "eshd"]
    values = evaluate(GraphPosterior(graphs), dataset_with(truth), names=names, rng=np.random.default_rng(0))
    assert list(values) == names
    assert all(type(value) is float for value in values.values())


def test_unknown_metric_is_refused_with_the_known_ones(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    with pytest.raises(InvalidInput, match=r"metrics\.names: expected names among .*eshd, .*mmd, .*l2, got 'esdh'"):
        evaluate(GraphPosterior(graphs), dataset_with(truth), names=["esdh"], rng=np.random.default_rng(0))


def test_number_of_graphs_below_one_is_refused(truth_and_graphs, dataset_with):
    truth, graphs = truth_and_graphs
    with pytest.raises(InvalidInput, match=r"metrics\.num_graphs"):
        evaluate_all(GraphPosterior(graphs), dataset_with(truth), num_graphs=0)


def test_classes_of_a_posterior_are_merged(arrows):
    chain, fork = arrows(3, (0, 1), (1, 2)), arrows(3, (1, 0), (1, 2))
    classes = SampledPosterior(GraphPosterior(np.array([chain, fork])), np.random.default_rng(0)).classes
    assert len(classes.graphs.graphs) == 1


def test_configured_metrics_exist(pytestconfig):
    configs = {
        name: yaml.safe_load((pytestconfig.rootpath / "conf" / "metrics" / f"{name}.yaml").read_text())
        for name in ("structure", "interventional", "all")
    }
    for config in configs.values():
        names = config.pop("names")
        assert set(names) <= set(METRICS)
        check_request(names, **config)
        config["names"] = names
    assert configs["all"] == {
        **configs["structure"],
        **configs["interventional"],
        "names": configs["structure"]["names"] + configs["interventional"]["names"],
    }


def test_no_metrics_at_all_are_refused(truth_and_graphs):
    truth, graphs = truth_and_graphs
    with pytest.raises(InvalidInput, match=r"metrics\.names: expected at least one name"):
        evaluate(GraphPosterior(graphs), truth, names=[], rng=np.random.default_rng(0))
