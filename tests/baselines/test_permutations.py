from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from baselines.permutations import assignment, earlier, gumbel_noise, soft_sort, straight_through

ORDERS = list(permutations(range(4)))


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def place(hard):
    """The place in ORDERS of every permutation (n, ranks, items)."""
    places = {order: index for index, order in enumerate(ORDERS)}
    return np.array([places[tuple(order)] for order in hard.argmax(dim=-1).tolist()])


def test_sorted_perturbed_scores_are_drawn_as_items_without_replacement(generator):
    scores, draws = torch.tensor([0.5, -1.0, 1.2, 0.0]), 40_000
    _, hard = soft_sort(scores + gumbel_noise((draws, 4), generator), 1.0)
    odds = scores.exp().numpy().astype(float)
    expected = []
    for order in ORDERS:
        left = [odds[list(order[rank:])].sum() for rank in range(4)]
        expected.append(np.prod(odds[list(order)] / left))
    assert np.sum(expected) == pytest.approx(1)
    frequencies = np.bincount(place(hard), minlength=24) / draws
    np.testing.assert_allclose(frequencies, expected, rtol=0, atol=4 * np.sqrt(0.25 / draws))


def test_an_assignment_is_the_best_of_all_permutations(generator):
    matrices = torch.randn(50, 4, 4, generator=generator)
    sums = torch.stack([matrices[:, range(4), order].sum(dim=-1) for order in ORDERS])
    np.testing.assert_array_equal(place(assignment(matrices)), sums.argmax(dim=0).numpy())


def test_soft_permutations_become_hard_when_cold(generator):
    scores = torch.randn(20, 5, generator=generator)
    warm, hard = soft_sort(scores, 1.0)
    cold, _ = soft_sort(scores, 1e-4)
    torch.testing.assert_close(cold, hard, rtol=0, atol=1e-3)
    torch.testing.assert_close(warm.sum(dim=-1), torch.ones(20, 5))
    assert (hard.sum(dim=-2) == 1).all()
    assert (torch.gather(scores, 1, hard.argmax(dim=-1)).diff(dim=-1) <= 0).all()


def test_equal_scores_still_give_a_permutation():
    _, hard = soft_sort(torch.zeros(1, 4), 1.0)
    torch.testing.assert_close(hard[0], torch.eye(4))


def test_a_rounded_value_has_the_gradient_of_the_soft_one():
    soft = torch.tensor([0.3, 0.7], requires_grad=True)
    value = straight_through((soft > 0.5).float(), soft * 2)
    assert value.tolist() == [0, 1]
    (gradient,) = torch.autograd.grad(value[1], soft)
    assert gradient.tolist() == [0, 2]


def test_the_first_rank_comes_before_all_others():
    ranks = torch.eye(3)[[2, 0, 1]]  # node 2, then 0, then 1
    assert earlier(ranks).tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0]]
