"""Streams of one seed."""

import numpy as np
import pytest
import torch

from bci.errors import InvalidInput
from bci.randomness import stream, torch_generator

PURPOSES = ("graph", "mechanisms", "method", "metrics")


def test_a_stream_is_the_same_every_time():
    assert stream(7, "graph").random() == stream(7, "graph").random()


def test_streams_of_all_purposes_and_seeds_differ():
    draws = [stream(seed, purpose).random() for seed in range(20) for purpose in PURPOSES]
    assert len(set(draws)) == len(draws)


def test_first_draws_of_streams_are_uncorrelated():
    draws = np.array([[stream(seed, purpose).random() for purpose in PURPOSES] for seed in range(2000)])
    assert np.abs(np.corrcoef(draws.T) - np.eye(4)).max() < 4 / np.sqrt(2000)


def test_global_generators_are_left_alone():
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    generator = torch_generator(stream(3, "method"))
    torch.rand(5, generator=generator)
    assert np.array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())


def test_torch_generator_follows_the_numpy_one():
    draws = [torch.rand(4, generator=torch_generator(np.random.default_rng(seed))) for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "x", None, True])
def test_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(InvalidInput, match="seed: expected a whole number"):
        stream(seed, "method")
