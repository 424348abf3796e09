from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from bci.arco_gp import ArcoGP
from bci.causal_posterior import GenerativePosterior
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput
from bci.linear_posterior import fit_linear_posterior
from bci.posterior import GraphPosterior
from bci.posterior_file import VERSION, can_be_saved, load_posterior, save_posterior
from bci.predictive import fit_gp_mechanisms


@pytest.fixture(scope="module")
def dataset():
    return simulated_dataset(
        graph_model="er",
        num_nodes=4,
        expected_degree=1.5,
        mechanism="gp",
        num_samples=40,
        seed=1,
        interventions={"num_targets": 2, "samples_per_target": 5},
    )


def point(dataset):
    graphs = dataset.graph[None]
    structure = GraphPosterior(graphs)
    mechanisms = fit_gp_mechanisms(dataset, graphs)
    weighted = structure.sample_graphs(1, np.random.default_rng(0))
    return GenerativePosterior(structure, weighted, dataset.names, dataset.scaler, mechanisms, 2**62 + 1)


def linear(dataset):
    graphs = np.stack([dataset.graph, dataset.graph.T, np.zeros_like(dataset.graph)])
    return fit_linear_posterior(GraphPosterior(graphs, np.array([0.5, 0.2, 0.3])), dataset)


def arco(dataset):
    return ArcoGP(max_parents=1, steps=3, num_orders=4).fit(dataset, np.random.default_rng(0))


@pytest.fixture(scope="module", params=[point, linear, arco])
def posterior(request, dataset):
    return request.param(dataset)


@pytest.fixture
def saved(dataset, tmp_path):
    path = tmp_path / "posterior.npz"
    save_posterior(linear(dataset), path)
    return path


def answers(posterior):
    """Everything that can be asked of what is in a file."""
    do = {posterior.names[0]: 0.7, posterior.names[2]: -1.0}
    found = [
        posterior.edge_probabilities,
        *posterior.query_graphs,
        posterior.interventional_mean(do),
        posterior.interventional_means([{}, {1: 0.5}], original_scale=True),
        *posterior.average_causal_effect(1, {3: 0.5}),
    ]
    if isinstance(posterior, GenerativePosterior):
        found += posterior.sample_interventional(do, 50, np.random.default_rng(3))
        found += posterior.sample_interventional({}, 50, np.random.default_rng(4), original_scale=True)
    return found


def test_answers_after_loading_are_those_before_bit_for_bit(posterior, tmp_path):
    before = answers(posterior)
    save_posterior(posterior, tmp_path / "posterior.npz")
    loaded = load_posterior(tmp_path / "posterior.npz")
    for one, other in zip(before, answers(loaded), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (loaded.names, loaded.graph_kind) == (posterior.names, posterior.graph_kind)
    assert loaded.sample_graphs(3, np.random.default_rng(0)) == loaded.query_graphs
    save_posterior(loaded, tmp_path / "again.npz")
    for one, other in zip(before, answers(load_posterior(tmp_path / "again.npz")), strict=True):
        np.testing.assert_array_equal(one, other)


def test_names_and_layout_of_memory_are_kept(dataset, tmp_path):
    odd = replace(
        dataset,
        names=("ä b", "", "x,y=1", "null\0"),
        observations=np.asfortranarray(dataset.observations),
        draw_interventional_test=None,
    )
    made = point(odd)
    save_posterior(made, tmp_path / "p.npz")
    loaded = load_posterior(tmp_path / "p.npz")
    assert loaded.names == odd.names
    assert loaded.mechanisms.root(0) == made.mechanisms.root(0)


def test_the_file_is_read_without_pickle_and_says_what_it_is(saved):
    with np.load(saved, allow_pickle=False) as file:
        header = json.loads(str(file["header"]))
        assert (header["format"], header["version"], header["kind"]) == ("bci-posterior", VERSION, "linear")
        assert {member: file[member].dtype.kind for member in file.files} == {
            "header": "U",
            "edge_probabilities": "f",
            "graphs": "b",
            "weights": "f",
            "scaler_mean": "f",
            "scaler_std": "f",
            "coefficients": "f",
            "means": "f",
        }


def test_a_file_is_replaced_whole_or_left_alone(dataset, saved, monkeypatch):
    before = saved.read_bytes()

    def broken(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", broken)
        with pytest.raises(OSError, match="No space"):
            save_posterior(linear(dataset), saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["posterior.npz"]


def test_only_posteriors_with_known_mechanisms_can_be_saved(dataset, tmp_path):
    assert can_be_saved(point(dataset))
    structure = GraphPosterior(dataset.graph[None])
    other = replace(point(dataset), mechanisms=object())
    for posterior in (structure, other):
        assert not can_be_saved(posterior)
    with pytest.raises(TypeError, match="linear or GP mechanisms"):
        save_posterior(other, tmp_path / "p.npz")
    assert not list(tmp_path.iterdir())


def changed(path, **members):
    """Write the file again with other members; None leaves one out."""
    with np.load(path) as file:
        arrays = {member: file[member] for member in file.files}
    arrays |= members
    np.savez(path, **{member: array for member, array in arrays.items() if array is not None})


def header_with(path, **changes):
    with np.load(path) as file:
        header = json.loads(str(file["header"])) | changes
    changed(path, header=np.array(json.dumps(header)))


DEFECTS = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("PKA,Erk\n1,2\n"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "end cut off": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "flipped byte": lambda path: path.write_bytes(flip(path.read_bytes(), 400)),
    "pickle": lambda path: path.write_bytes(pickle.dumps([1])),
    "single array": lambda path: np.save(path.open("wb"), np.zeros(3)),
    "other archive": lambda path: zipfile.ZipFile(path, "w").writestr("a.txt", "b"),
    "other arrays": lambda path: np.savez(path, a=np.zeros(3)),
    "other format": lambda path: header_with(path, format="other"),
    "objects": lambda path: changed(path, means=np.array([{}], dtype=object)),
    "no weights": lambda path: changed(path, weights=None),
    "shape": lambda path: changed(path, scaler_mean=np.zeros(3)),
    "type": lambda path: changed(path, graphs=np.zeros((3, 4, 4))),
    "cycle": lambda path: changed(path, graphs=np.ones((3, 4, 4), dtype=bool)),
    "weights": lambda path: changed(path, weights=np.full(3, np.nan)),
    "no names": lambda path: header_with(path, names=None),
    "kind": lambda path: header_with(path, kind="magic"),
    "kind of others": lambda path: header_with(path, kind="gp"),
}


def flip(content, place):
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_damaged_or_other_file_is_one_line_that_names_it(saved, defect):
    DEFECTS[defect](saved)
    with pytest.raises(InvalidInput) as caught:
        load_posterior(saved)
    assert str(caught.value).startswith(f"{saved}: expected ")
    assert "\n" not in str(caught.value)


def test_a_newer_file_asks_for_a_newer_library(saved):
    header_with(saved, version=VERSION + 1, kind="unknown", names=3)
    with pytest.raises(InvalidInput, match=f"version {VERSION} or older, got {VERSION + 1}; update this library"):
        load_posterior(saved)
