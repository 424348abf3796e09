"""Learnt order models against their definitions, their samples and finite differences."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch

from bci.orders.sequential import AutoregressiveOrders, PlackettLuceOrders, gumbel

MODELS = ["mlp", "plackett_luce"]


def random_model(name, num_nodes, seed=0, spread=1.0):
    """A model with random parameters, far from the uniform distribution."""
    rng = np.random.default_rng(seed)
    model = AutoregressiveOrders(num_nodes, rng, hidden=6) if name == "mlp" else PlackettLuceOrders(num_nodes)
    with torch.no_grad():
        for parameter in model.parameters:
            parameter.copy_(torch.as_tensor(rng.normal(0, spread, tuple(parameter.shape))))
    return model


def naive_mlp_log_prob(model, order):
    """The network on the permutation matrix of every prefix, and a softmax over the nodes that are left."""
    first, first_bias, second, second_bias = (parameter.detach().numpy() for parameter in model.parameters)
    num_nodes = len(order)
    log_prob = 0.0
    for place, node in enumerate(order):
        prefix = np.zeros((num_nodes, num_nodes))
        for earlier in range(place):
            prefix[earlier, order[earlier]] = 1
        hidden = np.maximum(prefix.ravel() @ first.reshape(num_nodes * num_nodes, -1) + first_bias, 0)
        logits = hidden @ second + second_bias
        log_prob += logits[node] - math.log(sum(math.exp(logits[left]) for left in order[place:]))
    return log_prob


def naive_plackett_luce_log_prob(model, order):
    """The odds of every node against those that are left."""
    (logits,) = (parameter.detach().numpy() for parameter in model.parameters)
    return sum(
        logits[node] - math.log(sum(math.exp(logits[left]) for left in order[place:]))
        for place, node in enumerate(order)
    )


NAIVE = {"mlp": naive_mlp_log_prob, "plackett_luce": naive_plackett_luce_log_prob}


def log_odds(model, prefix, left, right):
    """Log odds that `left` rather than `right` follows the prefix."""
    rest = [node for node in range(4) if node not in prefix]

    def log_prob_next(node):
        others = [other for other in rest if other != node]
        orders = torch.tensor([[*prefix, node, *tail] for tail in permutations(others)])
        return torch.logsumexp(model.log_prob(orders).detach(), dim=0)

    return float(log_prob_next(left) - log_prob_next(right))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("num_nodes", [2, 3, 5])
def test_log_prob_equals_the_definition_for_every_order(all_orders, name, num_nodes):
    model, orders = random_model(name, num_nodes), all_orders(num_nodes)
    expected = [NAIVE[name](model, order) for order in orders.tolist()]
    np.testing.assert_allclose(model.log_prob(orders).detach(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("num_nodes", [2, 3, 4, 6])
def test_probabilities_of_all_orders_sum_to_one(all_orders, name, num_nodes):
    model = random_model(name, num_nodes, seed=1, spread=3.0)
    assert float(model.log_prob(all_orders(num_nodes)).detach().exp().sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", [0, 1])
def test_samples_are_as_frequent_as_probable(all_orders, assert_drawn_from, name, seed):
    model, orders = random_model(name, 4, seed, spread=0.7), all_orders(4)
    assert_drawn_from(model.sample(20_000, np.random.default_rng(seed)), orders, model.log_prob(orders).detach().exp())


@pytest.mark.parametrize("name", MODELS)
def test_samples_are_permutations(name):
    orders = random_model(name, 7).sample(100, np.random.default_rng(0))
    assert orders.dtype == torch.int64
    assert not orders.requires_grad
    np.testing.assert_array_equal(orders.sort(dim=1).values, np.tile(np.arange(7), (100, 1)))


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_equals_finite_differences(name):
    model = random_model(name, 5, seed=2)
    rng = np.random.default_rng(3)
    orders = model.sample(20, rng)
    weights = torch.as_tensor(rng.normal(size=20))
    (weights @ model.log_prob(orders)).backward()
    step = 1e-6
    for parameter in model.parameters:
        direction = torch.as_tensor(rng.normal(size=tuple(parameter.shape)))
        values = []
        for sign in (1, -2):
            parameter.data.add_(direction, alpha=sign * step)
            values.append(float(weights @ model.log_prob(orders).detach()))
        parameter.data.add_(direction, alpha=step)
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(
            float((parameter.grad * direction).sum()), rel=1e-5
        )


@pytest.mark.parametrize("name", MODELS)
def test_extreme_parameters_keep_log_prob_finite_and_differentiable(all_orders, name):
    model = random_model(name, 4, spread=300.0)
    log_prob = model.log_prob(all_orders(4))
    log_prob.sum().backward()
    assert log_prob.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters)


def test_untrained_plackett_luce_is_uniform(all_orders):
    log_prob = PlackettLuceOrders(4).log_prob(all_orders(4))
    np.testing.assert_allclose(log_prob.detach().exp(), 1 / 24)


@pytest.mark.parametrize(("name", "differs"), [("mlp", True), ("plackett_luce", False)])
def test_only_arco_lets_the_odds_of_two_nodes_depend_on_who_came_before(name, differs):
    model = random_model(name, 4, seed=5)
    odds = [log_odds(model, prefix, 2, 3) for prefix in ([], [0], [1])]
    assert (np.ptp(odds) > 0.1) == differs


@pytest.mark.parametrize("name", MODELS)
def test_the_seed_decides_the_orders(name):
    model = random_model(name, 6)
    first, again, other = (model.sample(50, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_seed_decides_the_first_weights_and_their_width():
    first, again, other = (AutoregressiveOrders(4, np.random.default_rng(seed), hidden=16) for seed in (0, 0, 1))
    for left, same, different in zip(first.parameters, again.parameters, other.parameters, strict=True):
        assert torch.equal(left, same)
        assert not torch.equal(left, different)
    assert [tuple(parameter.shape) for parameter in first.parameters] == [(4, 4, 16), (16,), (16, 4), (4,)]
    for parameter in first.parameters:  # within 1/sqrt(fan-in), of 4 * 4 inputs and of 16 hidden units
        assert 0.5 / 4 < float(parameter.detach().abs().max()) <= 1 / 4


def test_gumbel_noise_has_its_mean_and_variance():
    noise = gumbel((200_000,), torch.Generator().manual_seed(0))
    assert noise.dtype == torch.float64
    assert float(noise.mean()) == pytest.approx(np.euler_gamma, abs=0.015)
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, rel=0.02)
